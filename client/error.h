/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_ERROR_H
#define KVREG_ERROR_H
/*
 * The last failure of each thread. It has a fixed place in the thread's own storage, so that
 * remembering one needs no memory and no lock.
 */
#include "proto/failure.h"

/**
 * error_return() - ends a public call: makes @f the thread's last error if @code is a failure, and
 * adds what only this process can read about itself.
 * @code: what the inner function returned; @f->code unless it is KVREG_E_OK
 *
 * Return: 0 or the -errno of @code.
 */
int error_return(int code, const struct failure *f);

#endif
