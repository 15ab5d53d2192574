use std::fs;
use std::os::unix::fs::MetadataExt as _;

use super::*;
use tscap_base::kernel_files::KernelFiles;
use tscap_base::recorded::Recorded;
use tscap_network::recorded::link;

mod journals;

/// A recorded machine with this process running on it, and a folder for
/// journals: eth0 has number 2, two queues and interrupts 38 and 40.
struct Machine {
    recorded: Recorded,
    files: KernelFiles,
    folder: JournalFolder,
}

impl std::ops::Deref for Machine {
    type Target = Recorded;

    fn deref(&self) -> &Recorded {
        &self.recorded
    }
}

const RUNNING: u64 = 4711;

impl Machine {
    fn new() -> Self {
        let recorded = Recorded::virtio();
        recorded.put(AFFINITY, "0-1");
        recorded.run(std::process::id(), RUNNING);
        let files = recorded.files.clone();
        Self {
            folder: JournalFolder::at(&recorded.path("journals"), &files),
            files,
            recorded,
        }
    }

    fn interface(&self) -> InterfaceId {
        let mut link = link("eth0", 2);
        link.mac = Some([2, 0, 0, 0, 0, 2]);
        InterfaceId::here(&link).unwrap()
    }

    fn plan(&self, setting: Setting, new: &str) -> Planned {
        Change::plan(&self.files, &self.interface(), setting, new.into()).unwrap()
    }

    fn change(&self, setting: Setting, new: &str) -> Change {
        self.plan(setting, new).change().unwrap()
    }

    fn irq(&self, irq: u32, queue: u32, new: &str) -> Change {
        let name = format!("virtio2-input.{queue}");
        self.change(Setting::IrqAffinity { irq, name }, new)
    }

    fn steer(&self, new: &str) -> Change {
        self.change(Setting::Rps { queue: 0 }, new)
    }

    fn changes(&self) -> SettingsGuard {
        SettingsGuard::new(self.folder.clone(), self.files.clone())
    }

    fn journals(&self) -> Vec<Journal> {
        let all = self.folder.all().unwrap();
        all.into_iter().map(Result::unwrap).collect()
    }
}

const AFFINITY: &str = "proc/irq/38/smp_affinity_list";
const RPS: &str = "sys/class/net/eth0/queues/rx-0/rps_cpus";
const THREADED: &str = "sys/class/net/eth0/threaded";

#[test]
fn changes_are_journalled_made_and_given_back() {
    let machine = Machine::new();
    let mut changes = machine.changes();
    assert!(changes.make(Vec::new()).unwrap().is_empty());
    assert!(machine.journals().is_empty(), "nothing changed, no journal");

    let refused = changes
        .make(vec![machine.irq(38, 0, "1"), machine.steer("0,33")])
        .unwrap();
    assert!(refused.is_empty());
    assert_eq!(machine.get(AFFINITY), "1");
    assert_eq!(machine.get(RPS), "00000002,00000001");
    let flows = machine.change(Setting::RpsFlows { queue: 0 }, "8");
    changes.make(vec![flows]).unwrap();

    let journals = machine.journals();
    assert_eq!(journals.len(), 1);
    let journal = &journals[0];
    assert_eq!(
        (journal.pid, journal.started),
        (std::process::id(), RUNNING)
    );
    let recorded: Vec<_> = journal
        .changes
        .iter()
        .map(|change| (change.old.as_str(), change.new.as_str()))
        .collect();
    assert_eq!(recorded, [("0-1", "1"), ("", "0,33"), ("0", "8")]);
    assert!(journal.changes[0].path.ends_with(AFFINITY));
    assert_eq!(machine.folder.state(journal).unwrap(), State::Live);

    drop(changes);
    assert_eq!(machine.get(AFFINITY), "0-1");
    assert_eq!(machine.get(RPS), "00000000");
    assert!(machine.journals().is_empty());
}

#[test]
fn what_others_do_on_our_account_is_given_back() {
    for is_done in [true, false] {
        let machine = Machine::new();
        let mut changes = machine.changes();
        changes
            .journal_ahead(vec![machine.irq(38, 0, "1")])
            .unwrap();
        assert_eq!(machine.get(AFFINITY), "0-1", "nothing is done yet");
        assert_eq!(machine.journals()[0].changes.len(), 1);
        if is_done {
            machine.put(AFFINITY, "1");
        }
        drop(changes);
        assert_eq!(machine.get(AFFINITY), "0-1");
        assert!(machine.journals().is_empty());
    }
}

#[test]
fn what_the_kernel_refuses_leaves_no_trace() {
    let machine = Machine::new();
    let mut changes = machine.changes();
    let gone = machine.irq(40, 1, "1");
    let kept = machine.irq(38, 0, "1");
    fs::remove_file(machine.path("proc/irq/40/smp_affinity_list")).unwrap();
    let refused = changes.make(vec![gone, kept.clone()]).unwrap();
    assert_eq!(refused.len(), 1);
    assert!(
        refused[0].error.to_string().contains("irq/40"),
        "{refused:?}"
    );
    assert_eq!(machine.journals()[0].changes, [kept]);
}

#[test]
fn a_managed_interrupt_is_named_so() {
    let machine = Machine::new();
    let change = machine.irq(38, 0, "1");
    // A file that refuses writes as that interrupt's does: with EIO.
    fs::remove_file(machine.path(AFFINITY)).unwrap();
    std::os::unix::fs::symlink("/proc/self/mem", machine.path(AFFINITY)).unwrap();
    let refused = machine.changes().make(vec![change]).unwrap();
    assert!(
        matches!(refused[0].error, ChangeError::ManagedIrq(_)),
        "{refused:?}"
    );
}

#[test]
fn no_change_where_there_is_nothing_to_change() {
    let machine = Machine::new();
    let name = || "virtio2-input.0".to_owned();
    let irq = |irq, name| machine.plan(Setting::IrqAffinity { irq, name }, "0-1");
    assert_eq!(irq(38, name()), Planned::AsWanted);
    assert_eq!(irq(39, name()), Planned::Absent, "no such interrupt");
    assert_eq!(irq(40, name()), Planned::Absent, "another one by now");
    assert_eq!(
        machine.plan(Setting::Rps { queue: 7 }, "0"),
        Planned::Absent
    );
    machine.put(AFFINITY, "all of them");
    let setting = Setting::IrqAffinity {
        irq: 38,
        name: name(),
    };
    let error = Change::plan(&machine.files, &machine.interface(), setting, "0".into());
    assert!(matches!(error, Err(ChangeError::Value { .. })), "{error:?}");
}

#[test]
fn what_became_of_it_decides_what_is_given_back() {
    let machine = Machine::new();
    let change = machine.irq(38, 0, "1");
    let given_back = || change.give_back(&machine.files);
    assert!(
        matches!(given_back(), RestoreOutcome::Already),
        "never made"
    );
    machine.put(AFFINITY, "1");
    assert!(matches!(given_back(), RestoreOutcome::Restored));
    assert_eq!(machine.get(AFFINITY), "0-1");
    machine.put(AFFINITY, "0");
    assert!(matches!(given_back(), RestoreOutcome::LeftAlone { now } if now == "0"));
    assert_eq!(machine.get(AFFINITY), "0");
    machine.put(AFFINITY, "?");
    assert!(matches!(
        given_back(),
        RestoreOutcome::Failed(ChangeError::Value { .. })
    ));
    machine.put("proc/interrupts", " 38:  1  0  PCI-MSIX 1-edge  nvme0q1");
    machine.put(AFFINITY, "1");
    assert!(
        matches!(given_back(), RestoreOutcome::Gone),
        "the number was reused"
    );
    assert_eq!(machine.get(AFFINITY), "1");
}

#[test]
fn an_interface_is_known_by_its_number_and_address() {
    let machine = Machine::new();
    let change = machine.steer("1");
    let given_back = || change.give_back(&machine.files);
    let folder = machine.path("sys/class/net/eth0");
    machine.put(RPS, "2");
    fs::rename(&folder, folder.with_file_name("lan0")).unwrap();
    assert!(matches!(given_back(), RestoreOutcome::Restored));
    let renamed = "sys/class/net/lan0/queues/rx-0/rps_cpus";
    assert_eq!(machine.get(renamed), "00000000");
    // The number belongs to another interface.
    machine.put(renamed, "2");
    machine.put("sys/class/net/lan0/address", "02:00:00:00:00:99");
    let RestoreOutcome::NotSame { now } = given_back() else {
        panic!("another address");
    };
    let said = change.not_same(&now);
    for part in [
        "number 2 was eth0",
        "02:00:00:00:00:99 now",
        "rps_cpus to none",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!(machine.get(renamed), "2");
    // There is another interface of the name, with another number.
    machine.put("sys/class/net/lan0/ifindex", "3");
    assert!(matches!(given_back(), RestoreOutcome::Gone));
    assert_eq!(machine.get(renamed), "2");
}

#[test]
fn a_journal_without_addresses_goes_by_number_and_name() {
    let machine = Machine::new();
    let mut change = machine.steer("1");
    change.interface.mac = None;
    change.interface.netns.cookie = None;
    machine.put(RPS, "2");
    assert!(matches!(
        change.give_back(&machine.files),
        RestoreOutcome::Restored
    ));
    let folder = machine.path("sys/class/net/eth0");
    machine.put(RPS, "2");
    fs::rename(&folder, folder.with_file_name("lan0")).unwrap();
    let given_back = change.give_back(&machine.files);
    assert!(
        matches!(given_back, RestoreOutcome::NotSame { .. }),
        "{given_back:?}"
    );
    assert_eq!(machine.get("sys/class/net/lan0/queues/rx-0/rps_cpus"), "2");
}

#[test]
fn a_change_of_another_namespace_waits_there() {
    let machine = Machine::new();
    let mut elsewhere = machine.steer("1");
    // The inode number is used again: this namespace is not that one.
    let here = elsewhere.interface.netns;
    elsewhere.interface.netns.cookie = Some(u64::MAX);
    assert!(!elsewhere.is_here());
    elsewhere.interface.netns.inode = 1;
    let given_back = elsewhere.give_back(&machine.files);
    assert!(
        matches!(given_back, RestoreOutcome::Gone),
        "nobody is in it"
    );
    // A thread in it, and no permission to enter.
    let net = machine.path("proc/77/task/77/ns/net");
    fs::create_dir_all(net.parent().unwrap()).unwrap();
    fs::write(&net, "").unwrap();
    elsewhere.interface.netns.inode = fs::metadata(net).unwrap().ino();
    assert_ne!(elsewhere.interface.netns.inode, here.inode);
    let given_back = elsewhere.give_back(&machine.files);
    assert!(matches!(given_back, RestoreOutcome::Elsewhere));
    // Interrupts are the same in every namespace.
    let mut irq = machine.irq(38, 0, "1");
    irq.interface.netns = elsewhere.interface.netns;
    assert!(matches!(
        irq.give_back(&machine.files),
        RestoreOutcome::Already
    ));
}

#[test]
fn what_a_running_process_has_changed_since_is_kept() {
    let machine = Machine::new();
    let change = machine.steer("1");
    let journal_of = |pid| {
        machine.run(pid, 5);
        let mut journal = machine.folder.journal_of(pid).unwrap();
        journal.changes.push(change.clone());
        machine.folder.write(&journal).unwrap();
        journal
    };
    let (left, live) = (journal_of(77), journal_of(78));
    machine.put(RPS, "3");
    let mut became = Vec::new();
    let done = left.give_back(&machine.folder, &machine.files, &[live], |_, it| {
        became.push(it)
    });
    done.unwrap();
    assert!(
        matches!(became[..], [RestoreOutcome::InUse { pid: 78 }]),
        "{became:?}"
    );
    assert_eq!(
        (machine.get(RPS).as_str(), machine.journals().len()),
        ("3", 2)
    );
}

#[test]
fn poll_threads_are_known_by_their_start() {
    // A real thread: affinities are system calls. This test's own.
    let machine = Machine::new();
    let pid = nix::unistd::gettid().as_raw().cast_unsigned();
    machine.run(pid, 99);
    let cpus = tscap_host::affinity::allowed_cpus().unwrap();
    let last = cpus.last().unwrap().to_string();
    let setting = |started| Setting::NapiAffinity {
        pid,
        started,
        name: "napi/eth0-12".into(),
    };
    assert_eq!(
        machine.plan(setting(98), &last),
        Planned::Absent,
        "a number used again"
    );
    let Planned::Change(change) = machine.plan(setting(99), &last) else {
        return; // With one CPU there is nothing to pin to.
    };
    let mut changes = machine.changes();
    assert!(changes.make(vec![change.clone()]).unwrap().is_empty());
    assert_eq!(change.now(&machine.files).unwrap(), Some(last));
    drop(changes);
    assert_eq!(tscap_host::affinity::allowed_cpus().unwrap(), cpus);
}

#[test]
fn what_cannot_be_given_back_stays_in_the_journal() {
    let machine = Machine::new();
    let mut changes = machine.changes();
    let all = vec![machine.irq(38, 0, "1"), machine.steer("1")];
    changes.make(all.clone()).unwrap();
    machine.put(AFFINITY, "?");
    drop(changes);
    assert_eq!(machine.get(RPS), "00000000");
    assert_eq!(machine.journals()[0].changes, all[..1]);
}

#[test]
fn changes_that_last_are_given_back_when_that_is_wanted() {
    let machine = Machine::new();
    let mut changes = SettingsGuard::lasting(machine.folder.clone(), machine.files.clone());
    machine.put(THREADED, "1");
    let threaded = machine.change(Setting::ThreadedNapi, "0");
    changes
        .make(vec![machine.irq(38, 0, "1"), threaded])
        .unwrap();
    drop(changes);
    assert_eq!(
        (machine.get(AFFINITY), machine.get(THREADED)),
        ("1".into(), "0".into())
    );
    let journal = machine.journals().remove(0);
    assert_eq!(machine.folder.state(&journal).unwrap(), State::Live);
    machine.end(std::process::id());
    assert_eq!(machine.folder.state(&journal).unwrap(), State::Lasting);
    let done = journal.give_back(&machine.folder, &machine.files, &[], |_, _| {});
    done.unwrap();
    assert_eq!(
        (machine.get(AFFINITY), machine.get(THREADED)),
        ("0-1".into(), "1".into())
    );
    assert!(machine.journals().is_empty());
}

#[test]
fn no_change_leaves_no_journal_though_it_were_to_last() {
    let machine = Machine::new();
    let mut changes = SettingsGuard::lasting(machine.folder.clone(), machine.files.clone());
    let gone = Change {
        setting: Setting::Rps { queue: 77 },
        ..machine.steer("1")
    };
    let refused = changes.make(vec![gone]).unwrap();
    assert_eq!(refused.len(), 1);
    drop(changes);
    assert!(machine.journals().is_empty());
}

#[test]
fn a_receive_filter_is_journalled_by_its_name() {
    let change = Change {
        interface: Machine::new().interface(),
        setting: Setting::ReceiveFilter,
        path: "hwstamp_ctl -i eth0 -r".into(),
        old: "ptpv2-event".into(),
        new: "all".into(),
    };
    let json = serde_json::to_value(&change).unwrap();
    assert_eq!(json["kind"], "receive_filter");
    assert_eq!(serde_json::from_value::<Change>(json).unwrap(), change);
    let expected = "receive filter of eth0's hardware stamps";
    assert_eq!(change.to_string(), expected);
    // The loopback has none that could be set.
    let lo = InterfaceId::here(&link("lo", 1)).unwrap();
    let files = KernelFiles::live();
    let planned = Change::plan(&files, &lo, Setting::ReceiveFilter, "all".into());
    assert_eq!(planned.unwrap(), Planned::Absent);
}
