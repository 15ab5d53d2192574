//! What this process may do.

use super::check::{Check, Topic, advice, fix};
use crate::sys::caps::Capability;

const CAPTURE: Topic = Topic {
    id: "privilege_capture",
    why: "Loading and attaching an XDP program takes CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON.",
};
const PROMISCUOUS: Topic = Topic {
    id: "privilege_promiscuous",
    why: "Without CAP_NET_RAW a capture is not promiscuous: frames for other hosts are not seen.",
};
const CHANGES: Topic = Topic {
    id: "privilege_changes",
    why: "--rx-cpu, --offloads off and tscap restore change the machine, which only root may.",
};

/// Privileges of this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Privileges {
    /// Capabilities that it would need for a capture, and lacks.
    pub lacks: Vec<Capability>,
    /// Whether it has CAP_NET_RAW.
    pub may_be_promiscuous: bool,
    /// Whether it is in the initial user namespace.
    pub in_initial_user_namespace: bool,
    /// Whether it is root's.
    pub is_root: bool,
    /// The command that gives the program what it needs.
    pub setcap: String,
}

impl Privileges {
    /// Whether programs can be loaded.
    pub fn may_load(&self) -> bool {
        self.lacks.is_empty() && self.in_initial_user_namespace
    }
}

/// Whether a capture can be made.
pub(super) fn capture(privileges: &Privileges) -> Check {
    if !privileges.in_initial_user_namespace {
        return CAPTURE.bad(
            "in a user namespace, from which capabilities don't reach BPF",
            advice("run tscap in the initial user namespace (not in a rootless container)"),
        );
    }
    if privileges.lacks.is_empty() {
        return CAPTURE.good("CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON");
    }
    let lacks: Vec<_> = privileges.lacks.iter().map(Capability::to_string).collect();
    let found = format!("this process lacks {}", lacks.join(", "));
    CAPTURE.bad(found, fix(&privileges.setcap))
}

/// Whether it can be promiscuous.
pub(super) fn promiscuous(privileges: &Privileges) -> Check {
    match privileges.may_be_promiscuous {
        true => PROMISCUOUS.good("CAP_NET_RAW"),
        false => PROMISCUOUS.warning("this process lacks CAP_NET_RAW", fix(&privileges.setcap)),
    }
}

/// Whether it can steer interrupts and switch offloads.
pub(super) fn changes(privileges: &Privileges) -> Check {
    match privileges.is_root {
        true => CHANGES.good("root"),
        false => CHANGES.warning(
            "not root",
            advice("run tscap capture as root where you need these"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::check::Verdict::{Bad, Good, Warning};

    fn root() -> Privileges {
        Privileges {
            lacks: Vec::new(),
            may_be_promiscuous: true,
            in_initial_user_namespace: true,
            is_root: true,
            setcap: "setcap it".into(),
        }
    }

    #[test]
    fn each_feature_has_its_privilege() {
        capture(&root()).is(Good, "CAP_BPF");
        promiscuous(&root()).is(Good, "CAP_NET_RAW");
        changes(&root()).is(Good, "root");
        assert!(root().may_load());

        let nobody = Privileges {
            lacks: vec![Capability::Bpf, Capability::Perfmon],
            may_be_promiscuous: false,
            is_root: false,
            ..root()
        };
        capture(&nobody)
            .is(Bad, "lacks CAP_BPF, CAP_PERFMON")
            .fixed_by("setcap it");
        promiscuous(&nobody)
            .is(Warning, "lacks CAP_NET_RAW")
            .fixed_by("setcap it");
        changes(&nobody).is(Warning, "not root").advises("as root");
        assert!(!nobody.may_load());
    }

    #[test]
    fn root_in_a_user_namespace_is_not_enough() {
        let inside = Privileges {
            in_initial_user_namespace: false,
            ..root()
        };
        capture(&inside)
            .is(Bad, "user namespace")
            .advises("initial");
        assert!(!inside.may_load());
    }
}
