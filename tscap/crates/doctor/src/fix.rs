//! What is to be done of what the checks advise: by tscap, where `tscap restore` can give it
//! back, else by whoever looks after the machine.

use serde::Serialize;

use super::check::{Check, Remedy, Verdict};
use tscap_base::kernel_files::KernelFiles;
use tscap_live::settings::{Change, ChangeError, InterfaceId, Planned, Setting};

/// What tscap does, and what it leaves.
#[derive(Debug)]
pub struct FixPlan {
    /// Settings of the interface, each with the check that advises it.
    pub changes: Vec<(&'static str, Change)>,
    /// The rest.
    pub left: Vec<UnfollowedAdvice>,
}

/// Advice that tscap does not follow itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UnfollowedAdvice {
    /// The check.
    pub check: &'static str,
    /// What it advises.
    #[serde(flatten)]
    pub remedy: Remedy,
    /// Why tscap does not do it.
    pub reason: &'static str,
}

impl FixPlan {
    /// What follows from the `checks`, with the settings of the interface read now.
    ///
    /// # Errors
    /// If a setting can't be read.
    pub fn of(
        checks: &[Check],
        files: &KernelFiles,
        interface: &InterfaceId,
    ) -> Result<Self, ChangeError> {
        let (mut changes, mut left) = (Vec::new(), Vec::new());
        for check in checks.iter().filter(|it| it.verdict != Verdict::Good) {
            for wanted in &check.settings {
                let (setting, value) = (wanted.setting.clone(), wanted.value.clone());
                let planned = Change::plan(files, interface, setting, value)?;
                if let Planned::Change(change) = planned {
                    changes.push((check.id, change));
                }
            }
            if check.settings.is_empty()
                && let Some(remedy) = &check.remedy
            {
                left.push(UnfollowedAdvice::of(check.id, remedy));
            }
        }
        changes.sort_by_key(|(_, change)| turn(&change.setting));
        Ok(Self { changes, left })
    }
}

/// When a setting's turn is. Threads and deferred interrupts are of NAPIs, which veth has for
/// GRO only; interrupts are of queues, which drivers build anew for other offloads.
fn turn(setting: &Setting) -> u8 {
    match setting {
        Setting::ThreadedNapi | Setting::DeferredInterrupts => 0,
        Setting::Offload { .. } => 1,
        _ => 2,
    }
}

impl UnfollowedAdvice {
    fn of(check: &'static str, remedy: &Remedy) -> Self {
        Self {
            check,
            remedy: remedy.clone(),
            reason: match remedy {
                Remedy::Fix(_) => {
                    "not a setting of this interface that tscap restore could give back"
                }
                Remedy::Advice(_) => "no command does it",
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{Topic, advice, fix};
    use tscap_base::recorded::Recorded;
    use tscap_live::settings::SettingValue;
    use tscap_network::recorded::link;

    const TOPIC: Topic = Topic {
        id: "topic",
        why: "It matters.",
    };

    #[test]
    fn what_can_be_given_back_is_changed_and_the_rest_is_left() {
        let machine = Recorded::virtio();
        machine.put("sys/class/net/eth0/threaded", "1");
        let to = |value: &str| SettingValue {
            setting: Setting::ThreadedNapi,
            value: value.into(),
        };
        let checks = [
            TOPIC.warning("on", fix("a")).that_sets(vec![to("0")]),
            // Somebody has been faster.
            TOPIC.warning("on", fix("b")).that_sets(vec![to("1")]),
            TOPIC.bad("down", fix("c")),
            TOPIC.warning("slow", advice("d")),
            TOPIC.good("fine"),
        ];
        let interface = InterfaceId::here(&link("eth0", 2)).unwrap();
        let plan = FixPlan::of(&checks, &machine.files, &interface).unwrap();
        let [(check, change)] = plan.changes.as_slice() else {
            panic!("{plan:?}");
        };
        assert_eq!(
            (*check, change.old_shown(), change.new_shown()),
            ("topic", "1", "0")
        );
        let left: Vec<_> = plan.left.iter().map(|left| &left.remedy).collect();
        assert_eq!(left, [&fix("c"), &advice("d")]);
        let json = serde_json::to_value(&plan.left[0]).unwrap();
        assert_eq!(
            (&json["check"], &json["fix"]),
            (&"topic".into(), &"c".into())
        );
    }
}
