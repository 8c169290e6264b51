/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The RDMA devices, and whether this process may use each: the uverbs node is opened, as access(2)
 * knows nothing of a device cgroup, which matters at open() only. Opening alone makes nothing.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exam.h"
#include "format.h"
#include "proto/codec.h"
#include "proto/fdset.h"

struct device {
	char name[80];
	char node[128]; /* "": the kernel has none for it */
	int error;      /* of opening the node; 0: it opens */
};

struct devices {
	struct device *all;
	size_t count;
	bool one_opens;
};

static int is_visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* The name of the uverbs node of a device: /sys/class/infiniband_verbs/uverbsN/ibdev names it. */
static bool find_uverbs(const struct host *host, const char *device, char *ret_name, size_t size)
{
	char path[512], name[80];
	struct dirent *entry;
	bool is_it = false;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/class/infiniband_verbs", host->sys);
	dir = opendir(path);
	while (dir && !is_it && (entry = readdir(dir))) {
		snprintf(path, sizeof(path), "%s/class/infiniband_verbs/%.64s/ibdev", host->sys,
			 entry->d_name);
		is_it = is_visible(entry) && proc_read(path, name, sizeof(name)) == 0 &&
			!strcmp(name, device);
		if (is_it)
			snprintf(ret_name, size, "%.64s", entry->d_name);
	}
	if (dir)
		closedir(dir);
	return is_it;
}

static void look_at(const struct host *host, const char *name, struct device *ret_device)
{
	struct device device = { .error = ENODEV };
	_cleanup_fd_ int fd = -1;
	char uverbs[80];

	text_clean(device.name, sizeof(device.name), name);
	if (find_uverbs(host, name, uverbs, sizeof(uverbs))) {
		snprintf(device.node, sizeof(device.node), "%s/infiniband/%.64s", host->dev,
			 uverbs);
		fd = host->open_device(device.node, O_RDWR | O_NONBLOCK | O_CLOEXEC);
		device.error = fd < 0 ? errno : 0;
	}
	*ret_device = device;
}

/* Return: false if there is no memory. */
static bool read_devices(const struct host *host, struct devices *ret_devices)
{
	struct devices devices = { 0 };
	struct dirent **entries = NULL;
	char path[512];
	int n;

	snprintf(path, sizeof(path), "%s/class/infiniband", host->sys);
	n = scandir(path, &entries, is_visible, versionsort);
	if (n > 0)
		devices.all = calloc((size_t)n, sizeof(*devices.all));
	for (int i = 0; i < n; i++) {
		if (devices.all) {
			look_at(host, entries[i]->d_name, &devices.all[devices.count]);
			devices.one_opens |= devices.all[devices.count++].error == 0;
		}
		free(entries[i]);
	}
	free(entries);
	*ret_devices = devices;
	return n <= 0 || devices.all;
}

static struct shown format_group(gid_t gid)
{
	struct group entry, *group = NULL;
	struct shown shown = { .text = "" };
	char buffer[4096];

	if (!getgrgid_r(gid, &entry, buffer, sizeof(buffer), &group) && group)
		text_clean(shown.text, sizeof(shown.text), group->gr_name);
	else
		snprintf(shown.text, sizeof(shown.text), "%u", gid);
	return shown;
}

static void say_missing(struct exam *exam, const struct device *device)
{
	if (origin_is_container(&exam->origin))
		change(&exam->findings,
		       "start the container with --device %s; in Kubernetes, ask for the resource "
		       "of the RDMA device plugin",
		       device->node);
	else
		change(&exam->findings,
		       "let udev make it (udevadm trigger), or run the program where it is");
}

/* Mode and owner refuse it: what udev and the kernel give it is 0666. */
static void say_mode(struct exam *exam, const struct device *device)
{
	struct stat st;

	if (stat(device->node, &st) < 0) {
		change(&exam->findings, "make the directory of %s accessible (chmod a+rx)",
		       device->node);
		return;
	}
	if (st.st_gid && (st.st_mode & (S_IRGRP | S_IWGRP)) == (S_IRGRP | S_IWGRP))
		change(&exam->findings,
		       "add the user to the group %s (usermod -aG, and log in again; --group-add "
		       "for a container), as mode %04o lets it in",
		       format_group(st.st_gid).text, st.st_mode & 07777u);
	else
		change(&exam->findings,
		       "chmod 0666 %s, its usual mode (now %04o, of %s:%s), and the same in the "
		       "udev rule that changed it",
		       device->node, st.st_mode & 07777u, format_user(st.st_uid).text,
		       format_group(st.st_gid).text);
}

static void say_what_to_change(struct exam *exam, const struct device *device)
{
	if (device->error == ENOENT)
		say_missing(exam, device);
	else if (device->error == EACCES)
		say_mode(exam, device);
	else if (device->error == EPERM && origin_is_container(&exam->origin))
		change(&exam->findings,
		       "the container's device cgroup forbids it: start it with --device %s",
		       device->node);
	else if (device->error == EPERM)
		change(&exam->findings, "the unit's device cgroup forbids it: "
					"DeviceAllow=char-infiniband_verbs rw in [Service]");
	else if (device->error == EMFILE || device->error == ENFILE)
		change(&exam->findings, "raise the limit on open files (ulimit -n)");
	else
		change(&exam->findings,
		       "see the kernel's log (dmesg): the driver may have failed or "
		       "been unloaded");
}

/* A container that was given one of the host's devices sees the others, and is well. */
static bool is_anothers(const struct devices *devices, const struct device *device)
{
	return devices->one_opens && (device->error == ENOENT || device->error == EPERM);
}

static void report_node(struct exam *exam, const struct devices *devices,
			const struct device *device)
{
	exam->findings.check = "uverbs";
	if (!device->error) {
		found_about(&exam->findings, VERDICT_PASS, device->name,
			    "%s: %s opens for reading and writing", device->name, device->node);
		return;
	}
	if (!device->node[0]) {
		found_about(&exam->findings, VERDICT_FAIL, device->name, "%s has no uverbs device",
			    device->name);
		change(&exam->findings, "load the kernel module ib_uverbs on the node");
		return;
	}
	found_about(&exam->findings, is_anothers(devices, device) ? VERDICT_WARN : VERDICT_FAIL,
		    device->name, "%s: %s cannot be opened for reading and writing: %s",
		    device->name, device->node, strerror(device->error));
	say_what_to_change(exam, device);
}

static void report_none(struct exam *exam)
{
	if (exam->daemon.state == DAEMON_ANSWERED && !strcmp(exam->daemon.device, "mock")) {
		found(&exam->findings, VERDICT_PASS,
		      "no RDMA device; the daemon's is a mock, which needs none");
		return;
	}
	found(&exam->findings, VERDICT_FAIL,
	      "this machine shows no RDMA device (%s/class/infiniband)", exam->host->sys);
	if (origin_is_container(&exam->origin))
		change(&exam->findings,
		       "run the container on a node with RDMA devices and hand them in: --device "
		       "/dev/infiniband/uverbs0, and the host's network, or a device moved into "
		       "the container's with \"rdma dev set NAME netns\"");
	else
		change(&exam->findings,
		       "load the driver of the network card (mlx5_ib, ...) and see \"rdma link\"; "
		       "to try without one: modprobe rdma_rxe, \"rdma link add rxe0 type rxe "
		       "netdev eth0\"");
}

void check_devices(struct exam *exam)
{
	struct devices devices;
	char names[240] = "";
	size_t used = 0;

	if (!read_devices(exam->host, &devices)) {
		exam->findings.failed = true;
		return;
	}
	if (!devices.count) {
		report_none(exam);
		return;
	}
	for (size_t i = 0; i < devices.count && used < sizeof(names); i++)
		used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", i ? ", " : "",
					 devices.all[i].name);
	found(&exam->findings, VERDICT_PASS, "%zu: %s", devices.count, names);
	for (size_t i = 0; i < devices.count; i++)
		report_node(exam, &devices, &devices.all[i]);
	free(devices.all);
}
