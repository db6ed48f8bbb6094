/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * A source of real frames for benchmarks: a library to preload into any program that is linked with
 * shared DPDK (Debian's dpdk-testpmd, millrace), which has to know nothing about it.
 *
 *   MILLRACE_SOURCE=frames.pcap LD_PRELOAD=libmillrace_source.so dpdk-testpmd --vdev net_null0 ...
 *
 * net_null hands out mbufs of zeros. When a net_null port starts, every Rx queue of it gets an Rx
 * callback that copies the frames of the capture, one after the other, into the mbufs of each burst
 * and sets their lengths. Other ports are left alone. Without MILLRACE_SOURCE nothing is copied.
 *
 * MILLRACE_SOURCE_LOG=file has one line of JSON appended: tsc_hz and what is copied, so that a
 * harness can turn time into cycles with the program's own clock.
 */

#include <dlfcn.h>
#include <err.h>
#include <pcap/pcap.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#define SOURCE_FRAMES_MAX 65536
#define SOURCE_LEN_MAX 2048 /* room in the mbufs of either program's default pool */

/* Compilers copy this in one, two or four moves, as wide as the clone's target has them. */
typedef uint8_t source_block __attribute__((vector_size(64), aligned(1), may_alias));

#if defined(__x86_64__) && !defined(__clang__)
#define SOURCE_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define SOURCE_CLONES
#endif

struct source_frame {
	uint8_t *data; /* padded to whole blocks, so that copying has no tail */
	uint16_t len;
	uint16_t blocks;
};

/* Frames are written once, before the first port starts, and only read afterwards. */
static struct source_frame *source_frames;
static uint32_t source_n;

/* One a queue, written by the lcore that polls it. */
struct source_queue {
	uint32_t next;
	bool attached; /* written by the thread that starts ports */
} __rte_cache_aligned;

static struct source_queue source_queues[RTE_MAX_ETHPORTS][RTE_MAX_QUEUES_PER_PORT];

SOURCE_CLONES static uint16_t
source_fill(
	uint16_t port, uint16_t queue, struct rte_mbuf **pkts, uint16_t n, uint16_t max, void *arg)
{
	struct source_queue *q = arg;
	uint32_t next = q->next;

	(void)port;
	(void)queue;
	(void)max;
	for (uint16_t i = 0; i < n; i++) {
		const struct source_frame *f = &source_frames[next];
		source_block *to = rte_pktmbuf_mtod(pkts[i], source_block *);
		const source_block *from = (const source_block *)f->data;

		if (++next == source_n)
			next = 0;
		for (uint16_t b = 0; b < f->blocks; b++)
			to[b] = from[b];
		pkts[i]->data_len = f->len;
		pkts[i]->pkt_len = f->len;
	}
	q->next = next;
	return n;
}

static void
source_add(const uint8_t *data, uint32_t len)
{
	struct source_frame *f = &source_frames[source_n];

	if (len > SOURCE_LEN_MAX)
		errx(1, "frame source: frame %u has %u bytes, at most %d fit", source_n + 1, len,
			SOURCE_LEN_MAX);
	f->len = (uint16_t)len;
	f->blocks = (uint16_t)((len + sizeof(source_block) - 1) / sizeof(source_block));
	f->data = aligned_alloc(sizeof(source_block), f->blocks * sizeof(source_block));
	if (f->data == NULL)
		err(1, "frame source");
	memset(f->data, 0, f->blocks * sizeof(source_block));
	memcpy(f->data, data, len);
	source_n++;
}

static void
source_load(const char *path)
{
	char why[PCAP_ERRBUF_SIZE];
	struct pcap_pkthdr *header;
	const u_char *data;
	pcap_t *pcap = pcap_open_offline(path, why);

	if (pcap == NULL)
		errx(1, "frame source: %s", why);
	source_frames = calloc(SOURCE_FRAMES_MAX, sizeof(*source_frames));
	if (source_frames == NULL)
		err(1, "frame source");
	while (source_n < SOURCE_FRAMES_MAX && pcap_next_ex(pcap, &header, &data) == 1)
		if (header->caplen > 0)
			source_add(data, header->caplen);
	pcap_close(pcap);
	if (source_n == 0)
		errx(1, "frame source: %s holds no frame", path);
}

static void
source_log(const char *path)
{
	FILE *f = fopen(path, "a");

	if (f == NULL)
		err(1, "frame source: %s", path);
	fprintf(f, "{\"tsc_hz\": %ju, \"frames\": %u, \"first_len\": %u}\n",
		(uintmax_t)rte_get_tsc_hz(), source_n, source_n != 0 ? source_frames[0].len : 0);
	if (fclose(f) != 0)
		err(1, "frame source: %s", path);
}

/* Once, when the first port starts: EAL is up then. */
static void
source_init(void)
{
	const char *frames = getenv("MILLRACE_SOURCE");
	const char *log = getenv("MILLRACE_SOURCE_LOG");

	if (frames != NULL)
		source_load(frames);
	if (log != NULL)
		source_log(log);
}

static void
source_attach(uint16_t port)
{
	struct rte_eth_dev_info info;

	if (rte_eth_dev_info_get(port, &info) != 0 || strcmp(info.driver_name, "net_null") != 0)
		return;
	for (uint16_t q = 0; q < info.nb_rx_queues; q++) {
		struct source_queue *sq = &source_queues[port][q];

		if (sq->attached)
			continue; /* started a second time: the callback is still there */
		if (rte_eth_add_rx_callback(port, q, source_fill, sq) == NULL)
			errx(1, "frame source: port %u queue %u takes no callback", port, q);
		sq->attached = true;
	}
}

/* In the way of the real one, which every program calls. */
int
rte_eth_dev_start(uint16_t port)
{
	static int (*real)(uint16_t port);

	if (real == NULL) {
		*(void **)&real = dlsym(RTLD_NEXT, "rte_eth_dev_start");
		if (real == NULL)
			errx(1, "frame source: %s", dlerror());
		source_init();
	}
	if (source_n != 0)
		source_attach(port);
	return real(port);
}

/* Programs that this one starts are not to be fed. */
static void __attribute__((constructor)) source_hide(void)
{
	unsetenv("LD_PRELOAD");
}
