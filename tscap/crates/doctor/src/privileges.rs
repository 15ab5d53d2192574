//! What this process may do.

use super::check::{Check, Topic, advice, fix};
use tscap_host::caps::{self, Capability};

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
    why: "--rx-cpu writes to files of procfs and sysfs that are root's.",
};
const KFUNC: Topic = Topic {
    id: "privilege_kfunc",
    why: "Without CAP_SYS_ADMIN no program may call tscap's kernel module: its kfuncs can't stamp then.",
};
const NAMESPACES: Topic = Topic {
    id: "privilege_namespaces",
    why: "tscap compare and loss make network namespaces of their own: with CAP_SYS_ADMIN only.",
};
const GEN: Topic = Topic {
    id: "privilege_gen",
    why: "tscap gen needs for native frames what a capture does, for a packet socket CAP_NET_RAW.",
};

/// Privileges of this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Privileges {
    /// Capabilities that it would need for one feature or another, and lacks.
    pub lacks: Vec<Capability>,
    /// Whether it is in the initial user namespace.
    pub in_initial_user_namespace: bool,
    /// Whether it is root's.
    pub is_root: bool,
    /// The command after which this user may capture.
    pub to_capture: String,
}

impl Privileges {
    /// Whether programs can be loaded.
    pub fn may_load(&self) -> bool {
        self.lacking(&caps::XDP).is_none() && self.in_initial_user_namespace
    }

    /// Those of `needed` that it lacks, in words.
    fn lacking(&self, needed: &[Capability]) -> Option<String> {
        let lacks = needed.iter().filter(|it| self.lacks.contains(it));
        let names: Vec<_> = lacks.map(Capability::to_string).collect();
        (!names.is_empty()).then(|| names.join(", "))
    }
}

/// All checks of privileges.
pub(super) fn all(privileges: &Privileges) -> Vec<Check> {
    vec![
        capture(privileges),
        promiscuous(privileges),
        changes(privileges),
        kfunc(privileges),
        namespaces(privileges),
        generator(privileges),
    ]
}

/// Whether a capture can be made.
fn capture(privileges: &Privileges) -> Check {
    if !privileges.in_initial_user_namespace {
        return CAPTURE.bad(
            "in a user namespace, from which capabilities don't reach BPF",
            advice("run tscap in the initial user namespace (not in a rootless container)"),
        );
    }
    match privileges.lacking(&caps::XDP) {
        None => CAPTURE.good("CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON"),
        Some(lacks) => CAPTURE.bad(
            format!("this process lacks {lacks}"),
            fix(&privileges.to_capture),
        ),
    }
}

/// Whether it can be promiscuous.
fn promiscuous(privileges: &Privileges) -> Check {
    match privileges.lacking(&[Capability::NetRaw]) {
        None => PROMISCUOUS.good("CAP_NET_RAW"),
        Some(lacks) => PROMISCUOUS.warning(
            format!("this process lacks {lacks}"),
            fix(&privileges.to_capture),
        ),
    }
}

/// Whether it can steer interrupts.
fn changes(privileges: &Privileges) -> Check {
    if privileges.is_root {
        CHANGES.good("root")
    } else {
        CHANGES.warning(
            "not root: no --rx-cpu",
            advice("start tscap capture as root for it: with -Z USER it goes on as you"),
        )
    }
}

/// Whether it can stamp by the kernel module.
fn kfunc(privileges: &Privileges) -> Check {
    beyond_capture(&KFUNC, privileges, &[Capability::SysAdmin])
}

/// Whether `compare` and `loss` can be run.
fn namespaces(privileges: &Privileges) -> Check {
    let needed = [&caps::XDP[..], &[Capability::SysAdmin]].concat();
    beyond_capture(&NAMESPACES, privileges, &needed)
}

/// What takes CAP_SYS_ADMIN, and is of use only where programs can be loaded.
fn beyond_capture(topic: &Topic, privileges: &Privileges, needed: &[Capability]) -> Check {
    if !privileges.in_initial_user_namespace {
        return topic.warning(
            "in a user namespace",
            advice("run tscap in the initial user namespace"),
        );
    }
    match privileges.lacking(needed) {
        None => topic.good("CAP_SYS_ADMIN"),
        Some(lacks) => topic.warning(
            format!("this process lacks {lacks}"),
            advice("run it as root"),
        ),
    }
}

/// Which frames `gen` can send.
fn generator(privileges: &Privileges) -> Check {
    let lacks = privileges.lacking(&[&caps::XDP[..], &[Capability::NetRaw]].concat());
    let has_native = privileges.may_load();
    let has_packet = privileges.lacking(&[Capability::NetRaw]).is_none();
    let found = match (has_native, has_packet) {
        (true, true) => {
            return GEN.good("CAP_BPF, CAP_NET_ADMIN, CAP_PERFMON and CAP_NET_RAW");
        }
        (true, false) => "native frames only",
        (false, true) => "only through a packet socket",
        (false, false) => "no frames can be sent",
    };
    match lacks {
        Some(lacks) => GEN.warning(
            format!("{found}: this process lacks {lacks}"),
            fix(&privileges.to_capture),
        ),
        None => GEN.warning(
            format!("{found}: in a user namespace"),
            advice("run tscap in the initial user namespace"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Verdict::{Bad, Good, Warning};

    fn root() -> Privileges {
        Privileges {
            lacks: Vec::new(),
            in_initial_user_namespace: true,
            is_root: true,
            to_capture: "join".into(),
        }
    }

    fn lacking(lacks: &[Capability]) -> Privileges {
        Privileges {
            lacks: lacks.into(),
            is_root: false,
            ..root()
        }
    }

    #[test]
    fn root_may_do_everything() {
        assert!(all(&root()).iter().all(|check| check.verdict == Good));
        capture(&root()).is(Good, "CAP_BPF");
        promiscuous(&root()).is(Good, "CAP_NET_RAW");
        changes(&root()).is(Good, "root");
        assert!(root().may_load());
    }

    #[test]
    fn each_feature_has_its_privilege() {
        let nobody = lacking(&[
            Capability::Bpf,
            Capability::Perfmon,
            Capability::NetRaw,
            Capability::SysAdmin,
        ]);
        capture(&nobody)
            .is(Bad, "lacks CAP_BPF, CAP_PERFMON")
            .fixed_by("join");
        promiscuous(&nobody)
            .is(Warning, "lacks CAP_NET_RAW")
            .fixed_by("join");
        changes(&nobody).is(Warning, "not root").advises("as root");
        kfunc(&nobody)
            .is(Warning, "this process lacks CAP_SYS_ADMIN")
            .advises("as root");
        namespaces(&nobody)
            .is(Warning, "lacks CAP_BPF, CAP_PERFMON, CAP_SYS_ADMIN")
            .advises("as root");
        assert!(!nobody.may_load());
    }

    #[test]
    fn a_capture_needs_no_more_than_its_own() {
        let capturing = lacking(&[Capability::NetRaw, Capability::SysAdmin]);
        capture(&capturing).is(Good, "CAP_BPF");
        kfunc(&capturing).is(Warning, "lacks CAP_SYS_ADMIN");
        namespaces(&capturing).is(Warning, "this process lacks CAP_SYS_ADMIN");
        assert!(capturing.may_load());
    }

    #[test]
    fn gen_sends_by_what_there_is() {
        let check = |lacks: &[Capability]| generator(&lacking(lacks));
        check(&[Capability::SysAdmin]).is(Good, "CAP_NET_RAW");
        check(&[Capability::NetRaw])
            .is(
                Warning,
                "native frames only: this process lacks CAP_NET_RAW",
            )
            .fixed_by("join");
        for one in caps::XDP {
            let found = format!("only through a packet socket: this process lacks {one}");
            check(&[one]).is(Warning, &found).fixed_by("join");
        }
        check(&[Capability::Bpf, Capability::NetRaw])
            .is(Warning, "no frames can be sent: ")
            .fixed_by("join");
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
        for check in [kfunc(&inside), namespaces(&inside)] {
            check.is(Warning, "user namespace").advises("initial");
        }
        generator(&inside)
            .is(Warning, "only through a packet socket: in a user namespace")
            .advises("initial");
        assert!(!inside.may_load());
    }
}
