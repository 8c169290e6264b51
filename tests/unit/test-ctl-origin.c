/* SPDX-License-Identifier: Apache-2.0 */
/* The doctor on the surroundings of a process: who set its limits, and which devices it may use. */
#include "fake-host.h"

#define ID  "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define POD "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1f0c.slice"

static void origins_show_in_the_cgroup(void **state)
{
	static const struct {
		const char *cgroup, *name, *raise;
		enum origin_kind kind;
	} cases[] = {
		{ "0::/system.slice/vllm.service", "vllm.service", "of vllm.service (systemctl",
		  ORIGIN_SERVICE },
		{ "0::/system.slice/system-vllm.slice/vllm@3.service/worker", "vllm@3.service",
		  "vllm@3.service", ORIGIN_SERVICE },
		{ "0::/user.slice/user-1000.slice/session-4.scope", "session-4.scope", "limits.d",
		  ORIGIN_SESSION },
		{ "0::/user.slice/user-1000.slice/user@1000.service/app.slice/vllm.service",
		  "vllm.service", "user@.service", ORIGIN_USER },
		{ "0::/system.slice/docker-" ID ".scope", "0123456789ab", "--ulimit memlock=-1:-1",
		  ORIGIN_DOCKER },
		{ "0::/docker/" ID, "0123456789ab", "daemon.json", ORIGIN_DOCKER },
		{ "0::/machine.slice/libpod-" ID ".scope/container", "0123456789ab",
		  "the user who starts it", ORIGIN_PODMAN },
		{ "0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID ".scope",
		  "0123456789ab", "--ulimit", ORIGIN_PODMAN },
		{ "0::/system.slice/nerdctl-" ID ".scope", "0123456789ab", "containerd.service",
		  ORIGIN_CONTAINERD },
		{ "0::" POD "/cri-containerd-" ID ".scope", "0123456789ab", "a pod cannot ask",
		  ORIGIN_KUBERNETES },
		{ "0::" POD "/crio-" ID ".scope", "0123456789ab", "a pod cannot ask",
		  ORIGIN_KUBERNETES },
		{ "9:name=systemd:/kubepods/besteffort/pod1/" ID "\n0::/", "0123456789ab",
		  "a pod cannot ask", ORIGIN_KUBERNETES },
		{ "3:cpuset:/\n1:name=systemd:/docker/" ID "\n0::/system.slice/docker.service",
		  "0123456789ab", "--ulimit", ORIGIN_DOCKER },
		{ "0::/lxc.payload.engine", "", "lxc.prlimit.memlock", ORIGIN_LXC },
		{ "0::/machine.slice/systemd-nspawn@engine.service/payload", "", ".nspawn",
		  ORIGIN_NSPAWN },
		{ "0::/system.slice/slurmstepd.scope/job_7/step_0/user/task_0", "",
		  "PropagateResourceLimitsExcept=MEMLOCK", ORIGIN_SLURM },
		/* Named like a runtime, or the runtime itself. */
		{ "0::/system.slice/docker.service", "docker.service", "of docker.service",
		  ORIGIN_SERVICE },
		{ "0::/system.slice/docker-registry.service", "docker-registry.service",
		  "of docker-registry.service", ORIGIN_SERVICE },
		{ "0::/", "", "as root, before", ORIGIN_UNKNOWN },
		{ "nonsense", "", "as root, before", ORIGIN_UNKNOWN },
	};
	struct fake_host *f = *state;
	struct origin origin;
	char raise[320];

	for (size_t i = 0; i < COUNT(cases); i++) {
		fake_file(f, "proc/self/cgroup", cases[i].cgroup);
		origin_read(&f->host, &origin);
		origin_raise(&origin, raise, sizeof(raise));
		if (origin.kind != cases[i].kind || strcmp(origin.name, cases[i].name) != 0 ||
		    !strstr(raise, cases[i].raise))
			fail_msg("%s: %d %s: %s", cases[i].cgroup, (int)origin.kind, origin.name,
				 raise);
	}
}

/* A cgroup namespace hides the path. */
static void origins_show_in_what_runtimes_leave(void **state)
{
	struct fake_host *f = *state;
	struct origin origin;

	fake_file(f, "proc/self/cgroup", "0::/\n");
	is_finding(examine(f, check_origin), VERDICT_SKIP, "/proc/self/cgroup", "");
	f->host.container = "lxc";
	origin_read(&f->host, &origin);
	assert_int_equal(origin.kind, ORIGIN_LXC);
	f->host.container = "oci";
	origin_read(&f->host, &origin);
	assert_int_equal(origin.kind, ORIGIN_CONTAINER);
	fake_file(f, "run/.containerenv", "");
	origin_read(&f->host, &origin);
	assert_int_equal(origin.kind, ORIGIN_PODMAN);
	fake_file(f, ".dockerenv", "");
	is_finding(examine(f, check_origin), VERDICT_PASS, "docker container: ", "");
	f->host.kubernetes = true;
	is_finding(examine(f, check_memlock), VERDICT_WARN, "64K", "a pod cannot ask for it");
}

static void fake_ancestor(const struct fake_host *f, unsigned pid, unsigned parent,
			  const char *cgroup, const char *limit)
{
	char path[64], text[256];

	snprintf(path, sizeof(path), "proc/%u/status", pid);
	snprintf(text, sizeof(text), "Name:\tx\nPPid:\t%u\n", parent);
	fake_file(f, path, text);
	snprintf(path, sizeof(path), "proc/%u/cgroup", pid);
	fake_file(f, path, cgroup);
	snprintf(path, sizeof(path), "proc/%u/comm", pid);
	fake_file(f, path, "bash\n");
	snprintf(path, sizeof(path), "proc/%u/limits", pid);
	snprintf(text, sizeof(text),
		 "Limit  Soft Limit  Hard Limit  Units\nMax locked memory  4096  %s  bytes\n",
		 limit);
	fake_file(f, path, text);
}

static void who_lowered_the_limit_below_the_unit_is_named(void **state)
{
	static const char unit[] = "0::/system.slice/engine.service\n";
	struct fake_host *f = *state;

	fake_ancestor(f, 41, 40, unit, "65536");
	fake_ancestor(f, 40, 1, unit, "8388608");
	fake_ancestor(f, 1, 0, "0::/init.scope\n", "unlimited");
	is_finding(examine(f, check_memlock), VERDICT_WARN, "64K",
		   "else keep the 8M that pid 40 (bash)");
	f->exam.bytes = 8 << 20;
	is_finding(examine(f, check_fits_direct), VERDICT_FAIL, "8M", "keep the 8M that pid 40");
	f->exam.bytes++;
	is_finding(examine(f, check_fits_direct), VERDICT_FAIL, "8M", "of engine.service");
	fake_ancestor(f, 40, 1, unit, "unlimited");
	is_finding(examine(f, check_fits_direct), VERDICT_FAIL, "8M",
		   "keep the unlimited that pid 40");
	/* What another cgroup has, was not given to this one. */
	fake_ancestor(f, 40, 1, "0::/init.scope\n", "unlimited");
	is_finding(examine(f, check_memlock), VERDICT_WARN, "64K", "of engine.service");
	/* A line that runs in a circle has an end. */
	fake_ancestor(f, 40, 41, unit, "65536");
	is_finding(examine(f, check_memlock), VERDICT_WARN, "64K", "of engine.service");
}

/* A disk image that was made from a container has its marks. */
static void marks_count_only_where_the_path_is_hidden(void **state)
{
	struct fake_host *f = *state;
	char path[96];

	fake_file(f, ".dockerenv", "");
	is_finding(examine(f, check_origin), VERDICT_PASS, "system unit engine.service: ", "");
	fake_file(f, "proc/self/cgroup", "0::/\n");
	is_finding(examine(f, check_origin), VERDICT_PASS, "docker container: ", "");
	fake_file(f, "proc/self/ns/.directory", "");
	snprintf(path, sizeof(path), "%s/self/ns/cgroup", f->proc);
	assert_int_equal(symlink("cgroup:[4026532000]", path), 0);
	is_finding(examine(f, check_origin), VERDICT_PASS, "docker container: ", "");
	assert_int_equal(unlink(path) | symlink("cgroup:[4026531835]", path), 0);
	is_finding(examine(f, check_origin), VERDICT_SKIP, "/proc/self/cgroup", "");
}

static void text_of_a_cgroup_does_not_reach_the_terminal(void **state)
{
	struct fake_host *f = *state;

	fake_file(f, "proc/self/cgroup", "0::/system.slice/a\033[31mb.service\n");
	is_finding(examine(f, check_origin), VERDICT_PASS, "a?[31mb.service", "");
}

/* ---- devices ---- */

static void no_device_fails_unless_the_daemon_needs_none(void **state)
{
	struct fake_host *f = *state;

	is_finding(examine(f, check_devices), VERDICT_FAIL, "no RDMA device", "modprobe rdma_rxe");
	fake_file(f, "proc/self/cgroup", "0::/docker/" ID "\n");
	is_finding(examine(f, check_devices), VERDICT_FAIL, "no RDMA device", "--device");
	fake_daemon(f, "verbs");
	is_finding(examine(f, check_devices), VERDICT_FAIL, "no RDMA device", "--device");
	fake_daemon(f, "mock");
	is_finding(examine(f, check_devices), VERDICT_PASS, "mock", "");
}

static void each_device_that_opens_is_named(void **state)
{
	struct fake_host *f = *state;

	fake_device(f, "mlx5_10", "uverbs0");
	fake_device(f, "mlx5_2", "uverbs1");
	is_finding(examine(f, check_devices), VERDICT_PASS, "2: mlx5_2, mlx5_10", "");
	assert_int_equal(f->exam.findings.count, 3);
	is_finding(&f->exam.findings.all[1], VERDICT_PASS, "/dev/infiniband/uverbs1 opens", "");
	is_finding(&f->exam.findings.all[2], VERDICT_PASS, "/dev/infiniband/uverbs0 opens", "");
	assert_string_equal(f->exam.findings.all[1].subject, "mlx5_2");
	assert_string_equal(f->exam.findings.all[1].check, "uverbs");
	assert_string_equal(f->exam.findings.all[0].check, "memlock");
}

/* Looks at the devices as a user whom modes bind. Return: the finding about the first device. */
static const struct finding *look_as_nobody(struct fake_host *f)
{
	bool root = geteuid() == 0;

	if (root)
		assert_int_equal(setegid(NOBODY) | seteuid(NOBODY), 0);
	examine(f, check_devices);
	if (root)
		assert_int_equal(seteuid(0) | setegid(0), 0);
	assert_true(f->exam.findings.count > 1);
	return &f->exam.findings.all[1];
}

static void a_mode_that_keeps_out_is_named(void **state)
{
	struct fake_host *f = *state;
	char path[96];

	fake_device(f, "mlx5_0", "uverbs0");
	fake_device(f, "mlx5_1", "uverbs1");
	snprintf(path, sizeof(path), "%s/infiniband/uverbs0", f->dev);
	assert_int_equal(chmod(path, 0444), 0);
	is_finding(look_as_nobody(f), VERDICT_FAIL, "mlx5_0: ", "chmod 0666 ");
	assert_non_null(strstr(f->exam.findings.all[1].found, path));
	assert_non_null(strstr(f->exam.findings.all[1].change, path));
	is_finding(&f->exam.findings.all[2], VERDICT_PASS, "mlx5_1", "");
	assert_int_equal(chmod(path, 0666), 0);
	is_finding(look_as_nobody(f), VERDICT_PASS, "uverbs0 opens", "");
}

static void a_group_that_lets_in_is_named(void **state)
{
	struct fake_host *f = *state;
	char path[96];

	if (geteuid() != 0)
		skip();
	fake_device(f, "mlx5_0", "uverbs0");
	snprintf(path, sizeof(path), "%s/infiniband/uverbs0", f->dev);
	assert_int_equal(chmod(path, 0660) | chown(path, 0, 54321), 0);
	is_finding(look_as_nobody(f), VERDICT_FAIL, "Permission denied", "group 54321");
}

static void a_node_that_is_missing_matters_if_it_is_the_only_one(void **state)
{
	struct fake_host *f = *state;
	char path[96];

	fake_device(f, "mlx5_0", "uverbs0");
	snprintf(path, sizeof(path), "%s/infiniband/uverbs0", f->dev);
	assert_int_equal(unlink(path), 0);
	examine(f, check_devices);
	is_finding(&f->exam.findings.all[1], VERDICT_FAIL, "No such file", "udev");
	fake_file(f, "proc/self/cgroup", "0::/docker/" ID "\n");
	examine(f, check_devices);
	is_finding(&f->exam.findings.all[1], VERDICT_FAIL, "No such file", "--device ");
	fake_device(f, "mlx5_1", "uverbs1");
	examine(f, check_devices);
	is_finding(&f->exam.findings.all[1], VERDICT_WARN, "mlx5_0", "--device ");
	is_finding(&f->exam.findings.all[2], VERDICT_PASS, "mlx5_1", "");
}

static int forbidden(const char *path, int flags)
{
	(void)path;
	(void)flags;
	errno = EPERM;
	return -1;
}

static void a_device_cgroup_is_suspected_where_the_mode_is_not(void **state)
{
	struct fake_host *f = *state;

	fake_device(f, "mlx5_0", "uverbs0");
	f->host.open_device = forbidden;
	examine(f, check_devices);
	is_finding(&f->exam.findings.all[1], VERDICT_FAIL, "not permitted",
		   "DeviceAllow=char-infiniband_verbs rw");
	fake_file(f, "proc/self/cgroup", "0::/docker/" ID "\n");
	examine(f, check_devices);
	is_finding(&f->exam.findings.all[1], VERDICT_FAIL, "not permitted", "--device");
}

static void a_device_without_uverbs_lacks_the_module(void **state)
{
	struct fake_host *f = *state;

	fake_device(f, "mlx5_0", NULL);
	examine(f, check_devices);
	is_finding(&f->exam.findings.all[1], VERDICT_FAIL, "mlx5_0 has no uverbs", "ib_uverbs");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(origins_show_in_the_cgroup),
		TEST(origins_show_in_what_runtimes_leave),
		TEST(who_lowered_the_limit_below_the_unit_is_named),
		TEST(marks_count_only_where_the_path_is_hidden),
		TEST(text_of_a_cgroup_does_not_reach_the_terminal),
		TEST(no_device_fails_unless_the_daemon_needs_none),
		TEST(each_device_that_opens_is_named),
		TEST(a_mode_that_keeps_out_is_named),
		TEST(a_group_that_lets_in_is_named),
		TEST(a_node_that_is_missing_matters_if_it_is_the_only_one),
		TEST(a_device_cgroup_is_suspected_where_the_mode_is_not),
		TEST(a_device_without_uverbs_lacks_the_module),
	};

	return RUN_GROUP("origin", tests);
}
