// SPDX-License-Identifier: GPL-2.0
/*
 * For tests, in virtual machines with Linux 6.12: a network interface with native XDP
 * that stamps frames by a PTP clock of its own. What is sent on tnictx is received on
 * tnicrx.
 *
 * Its clock is CLOCK_MONOTONIC with an offset and another rate, so that a test knows
 * what each stamp stands for: the moment of a stamp, by CLOCK_MONOTONIC, is written
 * into the frame, behind its Ethernet header, or behind the UDP header of IPv4.
 */
#include <linux/bpf.h>
#include <linux/bpf_trace.h>
#include <linux/etherdevice.h>
#include <linux/ethtool.h>
#include <linux/filter.h>
#include <linux/module.h>
#include <linux/net_tstamp.h>
#include <linux/netdevice.h>
#include <linux/ptp_clock_kernel.h>
#include <linux/unaligned.h>
#include <net/xdp.h>

static int skew_ppb = 20000;
module_param(skew_ppb, int, 0444);
MODULE_PARM_DESC(skew_ppb, "by how much the clock is faster than CLOCK_MONOTONIC");

static int offset_s = 37;
module_param(offset_s, int, 0444);
MODULE_PARM_DESC(offset_s, "how far the clock is ahead of CLOCK_REALTIME when it starts");

static int unstamped_every = 10;
module_param(unstamped_every, int, 0444);
MODULE_PARM_DESC(unstamped_every, "of so many frames one has no stamp");

static int hold_us;
module_param(hold_us, int, 0444);
MODULE_PARM_DESC(hold_us, "a frame is received no earlier after its stamp");

#define QUEUE_FRAMES 4096
/* Of the headers of Ethernet, IPv4 and UDP. */
#define UDP_HLEN (ETH_HLEN + 28)

struct tnic {
	struct net_device *dev;
	struct napi_struct napi;
	struct xdp_rxq_info rxq;
	struct sk_buff_head queue;
	struct bpf_prog __rcu *prog;
	struct kernel_hwtstamp_config config;
	u64 frames;
};

/* What its function for XDP programs gets. */
struct tnic_xdp {
	struct xdp_buff xdp;
	u64 stamp;
};

struct tnic_cb {
	u64 stamp;
	u64 mono;
};

static struct net_device *tx_dev, *rx_dev;

/* The clock: at base_mono it was base_phc. */
static DEFINE_SPINLOCK(phc_lock);
static u64 base_mono, base_phc;
static s64 phc_ppb;
static struct ptp_clock *phc;

static u64 phc_at(u64 mono)
{
	s64 since = mono - base_mono;

	return base_phc + since + div_s64(since * phc_ppb, NSEC_PER_SEC);
}

static void phc_set(u64 ns, s64 ppb, u64 mono)
{
	base_phc = ns;
	base_mono = mono;
	phc_ppb = ppb;
}

static int phc_gettimex64(struct ptp_clock_info *info, struct timespec64 *ts,
			  struct ptp_system_timestamp *system)
{
	unsigned long flags;
	u64 ns;

	spin_lock_irqsave(&phc_lock, flags);
	ptp_read_system_prets(system);
	ns = phc_at(ktime_get_ns());
	ptp_read_system_postts(system);
	spin_unlock_irqrestore(&phc_lock, flags);
	*ts = ns_to_timespec64(ns);
	return 0;
}

static int phc_settime64(struct ptp_clock_info *info, const struct timespec64 *ts)
{
	unsigned long flags;

	spin_lock_irqsave(&phc_lock, flags);
	phc_set(timespec64_to_ns(ts), phc_ppb, ktime_get_ns());
	spin_unlock_irqrestore(&phc_lock, flags);
	return 0;
}

static int phc_adjtime(struct ptp_clock_info *info, s64 delta)
{
	unsigned long flags;
	u64 mono;

	spin_lock_irqsave(&phc_lock, flags);
	mono = ktime_get_ns();
	phc_set(phc_at(mono) + delta, phc_ppb, mono);
	spin_unlock_irqrestore(&phc_lock, flags);
	return 0;
}

static int phc_adjfine(struct ptp_clock_info *info, long scaled_ppm)
{
	unsigned long flags;
	u64 mono;

	spin_lock_irqsave(&phc_lock, flags);
	mono = ktime_get_ns();
	phc_set(phc_at(mono), skew_ppb + scaled_ppm_to_ppb(scaled_ppm), mono);
	spin_unlock_irqrestore(&phc_lock, flags);
	return 0;
}

static struct ptp_clock_info phc_info = {
	.owner = THIS_MODULE,
	.name = "tscap_nic",
	.max_adj = 100000000,
	.gettimex64 = phc_gettimex64,
	.settime64 = phc_settime64,
	.adjtime = phc_adjtime,
	.adjfine = phc_adjfine,
};

/* What the wire would do: the frame arrives, and is stamped. */
static netdev_tx_t tnic_xmit(struct sk_buff *skb, struct net_device *dev)
{
	struct tnic *rx = netdev_priv(rx_dev);
	struct tnic_cb *cb = (struct tnic_cb *)skb->cb;
	unsigned long flags;
	unsigned int at = ETH_HLEN;
	u64 mono;

	if (((struct ethhdr *)skb->data)->h_proto == htons(ETH_P_IP))
		at = UDP_HLEN;
	if (!netif_running(rx_dev) || skb_queue_len(&rx->queue) >= QUEUE_FRAMES ||
	    skb->len < at + sizeof(u64) || skb_linearize(skb)) {
		dev->stats.tx_dropped++;
		dev_kfree_skb_any(skb);
		return NETDEV_TX_OK;
	}
	dev->stats.tx_packets++;
	dev->stats.tx_bytes += skb->len;
	skb_orphan(skb);
	spin_lock_irqsave(&phc_lock, flags);
	mono = ktime_get_ns();
	cb->stamp = phc_at(mono);
	spin_unlock_irqrestore(&phc_lock, flags);
	put_unaligned(mono, (u64 *)(skb->data + at));
	cb->mono = mono;
	if (rx->config.rx_filter != HWTSTAMP_FILTER_ALL ||
	    (unstamped_every && ++rx->frames % unstamped_every == 0))
		cb->stamp = 0;
	skb_queue_tail(&rx->queue, skb);
	napi_schedule(&rx->napi);
	return NETDEV_TX_OK;
}

static void tnic_receive(struct tnic *rx, struct bpf_prog *prog, struct sk_buff *from)
{
	struct tnic_xdp ctx = { .stamp = ((struct tnic_cb *)from->cb)->stamp };
	u64 due = ((struct tnic_cb *)from->cb)->mono + hold_us * NSEC_PER_USEC;
	struct page *page = dev_alloc_page();
	u32 act = XDP_PASS, len = from->len;
	struct sk_buff *skb;
	void *start;

	if (!page || len > SKB_WITH_OVERHEAD(PAGE_SIZE) - XDP_PACKET_HEADROOM)
		goto drop;
	while (ktime_get_ns() < due)
		cpu_relax();
	start = page_address(page);
	memcpy(start + XDP_PACKET_HEADROOM, from->data, len);
	xdp_init_buff(&ctx.xdp, PAGE_SIZE, &rx->rxq);
	xdp_prepare_buff(&ctx.xdp, start, XDP_PACKET_HEADROOM, len, false);
	if (prog)
		act = bpf_prog_run_xdp(prog, &ctx.xdp);
	if (act != XDP_PASS)
		goto drop;
	skb = build_skb(start, PAGE_SIZE);
	if (!skb)
		goto drop;
	skb_reserve(skb, ctx.xdp.data - start);
	skb_put(skb, ctx.xdp.data_end - ctx.xdp.data);
	skb->protocol = eth_type_trans(skb, rx->dev);
	rx->dev->stats.rx_packets++;
	rx->dev->stats.rx_bytes += len;
	napi_gro_receive(&rx->napi, skb);
	return;
drop:
	rx->dev->stats.rx_dropped++;
	if (page)
		put_page(page);
}

static int tnic_poll(struct napi_struct *napi, int budget)
{
	struct tnic *rx = container_of(napi, struct tnic, napi);
	struct bpf_prog *prog;
	struct sk_buff *skb;
	int done = 0;

	rcu_read_lock();
	prog = rcu_dereference(rx->prog);
	while (done < budget) {
		skb = skb_dequeue(&rx->queue);
		if (!skb)
			break;
		tnic_receive(rx, prog, skb);
		consume_skb(skb);
		done++;
	}
	rcu_read_unlock();
	if (done < budget && napi_complete_done(napi, done) &&
	    !skb_queue_empty(&rx->queue))
		napi_schedule(napi);
	return done;
}

static int tnic_open(struct net_device *dev)
{
	struct tnic *nic = netdev_priv(dev);
	int error;

	if (dev != rx_dev)
		return 0;
	error = xdp_rxq_info_reg(&nic->rxq, dev, 0, nic->napi.napi_id);
	if (error)
		return error;
	error = xdp_rxq_info_reg_mem_model(&nic->rxq, MEM_TYPE_PAGE_SHARED, NULL);
	if (error) {
		xdp_rxq_info_unreg(&nic->rxq);
		return error;
	}
	napi_enable(&nic->napi);
	return 0;
}

static int tnic_stop(struct net_device *dev)
{
	struct tnic *nic = netdev_priv(dev);

	if (dev != rx_dev)
		return 0;
	napi_disable(&nic->napi);
	skb_queue_purge(&nic->queue);
	xdp_rxq_info_unreg(&nic->rxq);
	return 0;
}

static int tnic_bpf(struct net_device *dev, struct netdev_bpf *bpf)
{
	struct tnic *nic = netdev_priv(dev);
	struct bpf_prog *old;

	if (dev != rx_dev || bpf->command != XDP_SETUP_PROG)
		return -EINVAL;
	old = rtnl_dereference(nic->prog);
	rcu_assign_pointer(nic->prog, bpf->prog);
	if (old)
		bpf_prog_put(old);
	return 0;
}

static int tnic_hwtstamp_get(struct net_device *dev,
			     struct kernel_hwtstamp_config *config)
{
	struct tnic *nic = netdev_priv(dev);

	if (dev != rx_dev)
		return -EOPNOTSUPP;
	config->flags = nic->config.flags;
	config->tx_type = nic->config.tx_type;
	config->rx_filter = nic->config.rx_filter;
	return 0;
}

static int tnic_hwtstamp_set(struct net_device *dev,
			     struct kernel_hwtstamp_config *config,
			     struct netlink_ext_ack *extack)
{
	struct tnic *nic = netdev_priv(dev);

	if (dev != rx_dev)
		return -EOPNOTSUPP;
	switch (config->rx_filter) {
	case HWTSTAMP_FILTER_NONE:
	case HWTSTAMP_FILTER_ALL:
	case HWTSTAMP_FILTER_PTP_V2_EVENT:
		nic->config = *config;
		return 0;
	default:
		return -ERANGE;
	}
}

static const struct net_device_ops tnic_ops = {
	.ndo_open = tnic_open,
	.ndo_stop = tnic_stop,
	.ndo_start_xmit = tnic_xmit,
	.ndo_bpf = tnic_bpf,
	.ndo_hwtstamp_get = tnic_hwtstamp_get,
	.ndo_hwtstamp_set = tnic_hwtstamp_set,
	.ndo_set_mac_address = eth_mac_addr,
	.ndo_validate_addr = eth_validate_addr,
};

static int tnic_get_ts_info(struct net_device *dev,
			    struct kernel_ethtool_ts_info *info)
{
	info->so_timestamping = SOF_TIMESTAMPING_RX_HARDWARE |
				SOF_TIMESTAMPING_RAW_HARDWARE;
	info->phc_index = dev == rx_dev ? ptp_clock_index(phc) : -1;
	info->rx_filters = BIT(HWTSTAMP_FILTER_NONE) | BIT(HWTSTAMP_FILTER_ALL) |
			   BIT(HWTSTAMP_FILTER_PTP_V2_EVENT);
	return 0;
}

static const struct ethtool_ops tnic_ethtool_ops = {
	.get_link = ethtool_op_get_link,
	.get_ts_info = tnic_get_ts_info,
};

static int tnic_rx_timestamp(const struct xdp_md *md, u64 *timestamp)
{
	const struct tnic_xdp *ctx = (const void *)md;

	if (!ctx->stamp)
		return -ENODATA;
	*timestamp = ctx->stamp;
	return 0;
}

static const struct xdp_metadata_ops tnic_metadata_ops = {
	.xmo_rx_timestamp = tnic_rx_timestamp,
};

static struct net_device *tnic_make(const char *name)
{
	struct net_device *dev = alloc_etherdev(sizeof(struct tnic));
	struct tnic *nic;

	if (!dev)
		return NULL;
	strscpy(dev->name, name, IFNAMSIZ);
	dev->netdev_ops = &tnic_ops;
	dev->ethtool_ops = &tnic_ethtool_ops;
	eth_hw_addr_random(dev);
	nic = netdev_priv(dev);
	nic->dev = dev;
	skb_queue_head_init(&nic->queue);
	return dev;
}

static int __init tnic_init(void)
{
	struct tnic *rx;
	int error = -ENOMEM;

	phc_set(ktime_get_real_ns() + (u64)offset_s * NSEC_PER_SEC, skew_ppb,
		ktime_get_ns());
	phc = ptp_clock_register(&phc_info, NULL);
	if (IS_ERR_OR_NULL(phc))
		return phc ? PTR_ERR(phc) : -ENODEV;
	tx_dev = tnic_make("tnictx");
	rx_dev = tnic_make("tnicrx");
	if (!tx_dev || !rx_dev)
		goto free;
	rx = netdev_priv(rx_dev);
	rx_dev->xdp_metadata_ops = &tnic_metadata_ops;
	rx_dev->xdp_features = NETDEV_XDP_ACT_BASIC;
	netif_napi_add(rx_dev, &rx->napi, tnic_poll);
	error = register_netdev(rx_dev);
	if (error)
		goto free;
	error = register_netdev(tx_dev);
	if (error)
		goto unregister;
	return 0;
unregister:
	unregister_netdev(rx_dev);
free:
	if (tx_dev)
		free_netdev(tx_dev);
	if (rx_dev)
		free_netdev(rx_dev);
	ptp_clock_unregister(phc);
	return error;
}
module_init(tnic_init);

static void __exit tnic_exit(void)
{
	unregister_netdev(tx_dev);
	unregister_netdev(rx_dev);
	free_netdev(tx_dev);
	free_netdev(rx_dev);
	ptp_clock_unregister(phc);
}
module_exit(tnic_exit);

MODULE_DESCRIPTION("a network interface with hardware stamps, for tscap's tests");
MODULE_LICENSE("GPL");
