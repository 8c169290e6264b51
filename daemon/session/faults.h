/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_SESSION_FAULTS_H
#define KVREG_SESSION_FAULTS_H
/*
 * Faults on purpose, for tests, as the supervisor's Welcome says them (daemon/faults.h has the
 * configuration). Only what a kernel or driver would do is done: a call takes long, or fails with an
 * errno; the code that the client gets is found as ever.
 *
 * The device's calls are wrapped: its struct device_ops is replaced by one that asks fault() first.
 * The others ask in place. A session without faults has its device unwrapped, and elsewhere one
 * test of a pointer.
 *
 * A delay is no place to do other work: it stands for a call that the process is in, so neither the
 * client's end nor a signal shortens it, and the supervisor's questions wait. The supervisor is told
 * when it begins.
 */
#include "control.pb-c.h"
#include "daemon/session/control.h"
#include "daemon/session/device.h"
#include "proto/faults.h"

/**
 * faults_init() - from now on there are faults. @device, @control: borrowed, for good.
 * Return: the device to use in place of @device.
 */
const struct device_ops *faults_init(const Kvreg__Faults *words, const struct device_ops *device,
				     struct control *control);

/**
 * fault() - what the kernel does at @stage before the call that the caller is about to make.
 * Return: 0 and errno is as it was: make the call; or -1 and errno: it has failed.
 */
int fault(enum fault_stage stage);

#endif
