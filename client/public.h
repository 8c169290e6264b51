/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_PUBLIC_H
#define KVREG_PUBLIC_H
/*
 * Everything is built with -fvisibility=hidden: a public function says so where it is defined, and
 * stands by name in kvreg-client.map.
 *
 * A public function wraps an inner one. The inner one returns an enum kvreg_code, 0 for success,
 * and fills the caller's struct failure; the public one publishes that with error_return(). So a
 * call that gets over a failure on its way leaves the thread's last error alone.
 */
#include "client/error.h"
#include "client/kvreg-client.h"

#define KVREG_PUBLIC __attribute__((visibility("default")))

#endif
