//! What attaching a native XDP program does to an interface at work. No kernel tells; the
//! table is from the drivers' sources (Linux 6.1 to 6.18), each line with its function.

/// What a driver does when its first native program comes, and again when that goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disturbance {
    /// It stops the device and builds its queues anew: frames are lost in both directions.
    NewQueues,
    /// It stops polling for a moment: frames are lost where the queue is full by then.
    Pause,
    /// It polls its queue (NAPI), and its peer no longer sends aggregates (TSO).
    Peer,
    /// What the drivers of its ports do.
    Ports,
    /// Nothing is lost.
    None,
}

use Disturbance::{NewQueues, None as Nothing, Pause, Peer, Ports};

/// Drivers by their names in `ethtool -i`, what each does, and the function that does it.
const DRIVERS: [(&str, Disturbance, &str); 28] = [
    ("atlantic", NewQueues, "aq_xdp_setup"),
    ("bnxt_en", NewQueues, "bnxt_xdp_set"),
    ("bonding", Ports, "bond_xdp_set"),
    ("ena", NewQueues, "ena_xdp_set"),
    ("fsl_dpaa2_eth", NewQueues, "dpaa2_eth_setup_xdp"),
    ("fsl_enetc", NewQueues, "enetc_setup_xdp_prog"),
    ("gve", NewQueues, "gve_set_xdp"),
    ("hv_netvsc", Ports, "netvsc_vf_setxdp"),
    ("i40e", NewQueues, "i40e_xdp_setup"),
    ("ice", NewQueues, "ice_xdp_setup_prog"),
    ("igb", NewQueues, "igb_xdp_setup"),
    ("igc", NewQueues, "igc_xdp_set_prog"),
    ("ixgbe", NewQueues, "ixgbe_xdp_setup"),
    ("ixgbevf", NewQueues, "ixgbevf_xdp_setup"),
    // Older kernels exchange a pointer.
    ("mana", NewQueues, "mana_xdp_set"),
    ("mlx4_en", NewQueues, "mlx4_xdp_set"),
    ("mlx5_core", NewQueues, "mlx5e_xdp_set"),
    ("mvneta", NewQueues, "mvneta_xdp_setup"),
    ("mvpp2", NewQueues, "mvpp2_xdp_setup"),
    ("nfp", NewQueues, "nfp_net_xdp_setup_drv"),
    ("qede", NewQueues, "qede_xdp_set"),
    ("rvu_nicpf", NewQueues, "otx2_xdp_setup"),
    ("sfc", Nothing, "efx_xdp_setup_prog"),
    ("st_gmac", NewQueues, "stmmac_xdp_set_prog"),
    ("tun", Nothing, "tun_xdp_set"),
    ("veth", Peer, "veth_xdp_set"),
    ("virtio_net", Pause, "virtnet_xdp_set"),
    ("vmxnet3", NewQueues, "vmxnet3_xdp_set"),
];

impl Disturbance {
    /// What `driver` does, with its function of the kernel; `None` if that is not known here.
    pub fn of(driver: &str) -> Option<(Self, &'static str)> {
        let mut known = DRIVERS.iter();
        let found = known.find(|(name, ..)| *name == driver);
        found.map(|(_, disturbance, function)| (*disturbance, *function))
    }

    /// Whether frames are lost whatever the traffic.
    pub fn loses(self) -> bool {
        self == Self::NewQueues
    }
}

/// What attaching native XDP makes `driver` do, as an end of "attaching native XDP …".
pub fn words(driver: &str) -> String {
    let Some((disturbance, function)) = Disturbance::of(driver) else {
        let driver = match driver {
            "" => "its driver",
            driver => driver,
        };
        return format!("may make {driver} build its queues anew, which is not known");
    };
    match disturbance {
        NewQueues => format!(
            "makes {driver} build its queues anew ({function}), and detaching again: frames are \
             lost meanwhile in both directions"
        ),
        Pause => format!(
            "halts {driver} for a moment ({function}), and detaching again: frames are lost if \
             its queue fills up meanwhile"
        ),
        Peer => format!(
            "has frames polled for, and its peer send no aggregates (TSO) until it is detached \
             ({function}): frames that wait then are lost"
        ),
        Ports => format!("does what it does to each interface below {driver} ({function})"),
        Nothing => format!("exchanges a pointer in {driver} ({function}): nothing is lost"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_driver_is_known_once_and_by_a_function() {
        for (at, (name, _, function)) in DRIVERS.iter().enumerate() {
            let later = &DRIVERS[at + 1..];
            assert!(later.iter().all(|(other, ..)| other > name), "{name}");
            assert!(function.contains("xdp"), "{name}: {function}");
            assert!(words(name).contains(function), "{name}");
        }
        assert_eq!(Disturbance::of("e1000e"), None);
        assert!(words("e1000e").contains("not known"));
        assert!(words("").contains("make its driver build"));
    }
}
