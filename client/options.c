/* SPDX-License-Identifier: Apache-2.0 */
#include "client/options.h"

#include <stdint.h>
#include <string.h>

bool options_copy(void *own, size_t size, const void *given)
{
	const uint8_t *bytes = given;
	size_t given_size;

	if (!given)
		return true;
	memcpy(&given_size, given, sizeof(given_size));
	if (given_size < sizeof(given_size))
		return false;
	for (size_t i = size; i < given_size; i++)
		if (bytes[i] != 0)
			return false;
	memcpy(own, given, given_size < size ? given_size : size);
	return true;
}
