/* Preloaded into one program, gives it a clock on the wall of its own: real time plus the seconds that a file holds, as
 * eight bytes in this machine's order. Other clocks are left alone. A jump is a write to that file.
 *
 * Nothing here allocates or looks up symbols: it is called before the allocator is ready, which is where libfaketime and
 * Envoy's allocator wait for each other.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *ahead_s;

__attribute__((constructor)) static void open_clock(void) {
	const char *path = getenv("LONGHAUL_TEST_CLOCK");
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	if (fd < 0)
		return;
	void *page = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	if (page != MAP_FAILED)
		ahead_s = page;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
	long result = syscall(SYS_clock_gettime, clock, now);
	if (result == 0 && ahead_s && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
		now->tv_sec += *ahead_s;
	return (int)result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
	(void)zone;
	struct timespec precise;
	if (clock_gettime(CLOCK_REALTIME, &precise) != 0)
		return -1;
	now->tv_sec = precise.tv_sec;
	now->tv_usec = precise.tv_nsec / 1000;
	return 0;
}

time_t time(time_t *into) {
	struct timespec now;
	if (clock_gettime(CLOCK_REALTIME, &now) != 0)
		return (time_t)-1;
	if (into)
		*into = now.tv_sec;
	return now.tv_sec;
}
