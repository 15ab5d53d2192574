//! Receive offloads: which are in force, which of them hide frames from XDP as
//! they arrived, and what attaching changed.

use std::collections::BTreeMap;

use tscap_file::pcapng::VlanTags;
use tscap_network::ethtool::{self, Feature};
use tscap_network::netdev::Link;

/// The device takes an 802.1Q tag off the frame.
const C_TAG: &str = "rx-vlan-hw-parse";
/// The same of an 802.1ad tag.
const S_TAG: &str = "rx-vlan-stag-hw-parse";

/// Offloads that make the file differ from what arrived, by the kernel's names:
/// the tag stripped, or several frames made one. In native mode XDP runs before
/// software GRO, so only the hardware's matter.
const HIDING: [(&str, &str); 4] = [
    (
        C_TAG,
        "the VLAN tag is stripped before XDP and would be missing from the file; \
         ethtool calls it rx-vlan-offload",
    ),
    (
        S_TAG,
        "the 802.1ad tag is stripped before XDP and would be missing from the file",
    ),
    (
        "rx-lro",
        "the device merges frames before XDP sees them; ethtool calls it large-receive-offload",
    ),
    ("rx-gro-hw", "the device merges frames before XDP sees them"),
];
/// In generic mode also this one.
const HIDING_GENERIC: (&str, &str) = (
    "rx-gro",
    "the stack merges frames before generic XDP sees them",
);

/// What is turned off for an XDP program and not on again when it goes: for one
/// in generic mode by the kernel (`generic_xdp_install`, net/core/dev.c), for a
/// native one by some drivers (`vmxnet3_xdp_set`).
const LASTING: [&str; 2] = ["rx-lro", "rx-gro-hw"];

/// Whether attaching may turn it off for longer than the program is attached.
pub fn is_lasting(name: &str) -> bool {
    LASTING.contains(&name)
}

/// Features as the kernel lists them; empty where there are none.
pub fn read(interface: &str) -> BTreeMap<String, Feature> {
    ethtool::features(interface).unwrap_or_default()
}

/// The receive offloads that are named in the file.
pub fn for_file(features: &BTreeMap<String, Feature>) -> BTreeMap<String, bool> {
    HIDING
        .iter()
        .chain([&HIDING_GENERIC])
        .filter_map(|(name, _)| Some(((*name).to_owned(), features.get(*name)?.on)))
        .collect()
}

/// Those in force that hide frames, with the reason. `generic`: the mode.
pub fn hiding(
    features: &BTreeMap<String, Feature>,
    generic: bool,
) -> Vec<(&'static str, &'static str)> {
    let more = generic.then_some(&HIDING_GENERIC);
    HIDING
        .iter()
        .chain(more)
        .filter(|(name, _)| features.get(*name).is_some_and(|feature| feature.on))
        .copied()
        .collect()
}

/// Those of [`hiding`] that really do, where VLAN tags are known to be `tags`.
pub fn hiding_with_tags(
    features: &BTreeMap<String, Feature>,
    generic: bool,
    tags: VlanTags,
) -> Vec<(&'static str, &'static str)> {
    let mut hiding = hiding(features, generic);
    hiding.retain(|(name, _)| tags == VlanTags::Stripped || ![C_TAG, S_TAG].contains(name));
    hiding
}

/// Whether VLAN tags are in the frames of `link` as XDP sees them. `are_read`: the
/// program reads those that were taken off.
pub fn vlan_tags(link: &Link, features: &BTreeMap<String, Feature>, are_read: bool) -> VlanTags {
    let is_on = |name| {
        features
            .get(name)
            .is_some_and(|feature: &Feature| feature.on)
    };
    match link.kind.as_deref() {
        _ if are_read => VlanTags::Kept,
        // Frames from a wire, or written by a process, enter the kernel here.
        None | Some("tun") if is_on(C_TAG) || is_on(S_TAG) => VlanTags::Stripped,
        None | Some("tun") if features.contains_key(C_TAG) => VlanTags::Kept,
        // Those of other virtual interfaces have been in the network stack, which keeps
        // the outer tag beside the frame's bytes (`skb->vlan_tci`).
        _ => VlanTags::Unknown,
    }
}

/// Names of features that differ, with the new state.
pub fn changes(
    before: &BTreeMap<String, Feature>,
    after: &BTreeMap<String, Feature>,
) -> Vec<(String, bool)> {
    after
        .iter()
        .filter(|(name, now)| before.get(*name).is_some_and(|was| was.on != now.on))
        .map(|(name, now)| (name.clone(), now.on))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn features(on: &[&str]) -> BTreeMap<String, Feature> {
        ["rx-vlan-hw-parse", "rx-gro", "tx-tcp-segmentation"]
            .into_iter()
            .map(|name| {
                let on = on.contains(&name);
                (name.to_owned(), Feature { on, fixed: false })
            })
            .collect()
    }

    #[test]
    fn gro_matters_in_generic_mode_only() {
        let all = features(&["rx-vlan-hw-parse", "rx-gro"]);
        let names = |generic| hiding(&all, generic).into_iter().map(|(name, _)| name);
        assert_eq!(names(false).collect::<Vec<_>>(), ["rx-vlan-hw-parse"]);
        assert_eq!(
            names(true).collect::<Vec<_>>(),
            ["rx-vlan-hw-parse", "rx-gro"]
        );
        assert!(hiding(&features(&[]), true).is_empty());
    }

    #[test]
    fn tags_are_known_where_frames_enter_the_kernel() {
        let of = |kind: Option<&str>, on: &[&str], are_read| {
            let mut link = tscap_network::recorded::link("eth0", 2);
            link.kind = kind.map(str::to_owned);
            vlan_tags(&link, &features(on), are_read)
        };
        for kind in [None, Some("tun")] {
            assert_eq!(of(kind, &[], false), VlanTags::Kept);
            assert_eq!(of(kind, &[C_TAG], false), VlanTags::Stripped);
            assert_eq!(of(kind, &[C_TAG], true), VlanTags::Kept);
        }
        for kind in ["veth", "bridge", "macvlan"] {
            assert_eq!(of(Some(kind), &[], false), VlanTags::Unknown, "{kind}");
            assert_eq!(of(Some(kind), &[C_TAG], false), VlanTags::Unknown);
            assert_eq!(of(Some(kind), &[], true), VlanTags::Kept);
        }
        let mut link = tscap_network::recorded::link("eth0", 2);
        link.kind = None;
        let no_features = BTreeMap::new();
        assert_eq!(vlan_tags(&link, &no_features, false), VlanTags::Unknown);
    }

    #[test]
    fn a_tag_that_is_kept_or_unknown_is_not_said_to_be_stripped() {
        let all = features(&[C_TAG, "rx-gro"]);
        for (tags, names) in [
            (VlanTags::Stripped, &[C_TAG, "rx-gro"][..]),
            (VlanTags::Kept, &["rx-gro"]),
            (VlanTags::Unknown, &["rx-gro"]),
        ] {
            let really = hiding_with_tags(&all, true, tags).into_iter();
            assert_eq!(really.map(|(name, _)| name).collect::<Vec<_>>(), names);
        }
    }

    #[test]
    fn what_attaching_changed_is_named() {
        let before = features(&["tx-tcp-segmentation"]);
        assert_eq!(
            changes(&before, &features(&[])),
            [("tx-tcp-segmentation".to_owned(), false)]
        );
        assert!(changes(&before, &before).is_empty());
    }
}
