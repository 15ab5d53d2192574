use super::*;
use crate::settings::{InterfaceId, Setting, SettingsGuard};
use tscap_base::recorded::Recorded;
use tscap_network::recorded::link;

const PID: u32 = 77;
const RPS: &str = "sys/class/net/eth0/queues/rx-0/rps_cpus";
const AFFINITY: &str = "proc/irq/38/smp_affinity_list";

fn restored(folder: &JournalFolder, files: &KernelFiles) -> Result<Report, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build();
    runtime.unwrap().block_on(restore(folder, files, || {}))
}

struct Machine {
    recorded: Recorded,
    folder: JournalFolder,
}

impl Machine {
    /// A capture as process `pid`, started at `started`, set CPU `cpu` for an
    /// interrupt and RPS.
    fn with_capture(pid: u32, started: u64, cpu: &str) -> Self {
        let recorded = Recorded::virtio();
        let folder = JournalFolder::at(&recorded.path("journals"), &recorded.files);
        let machine = Self { recorded, folder };
        machine.capture(pid, started, cpu);
        machine
    }

    fn capture(&self, pid: u32, started: u64, cpu: &str) {
        let files = &self.recorded.files;
        self.recorded.run(std::process::id(), started);
        let interface = InterfaceId::here(&link("eth0", 2)).unwrap();
        let name = "virtio2-input.0".to_owned();
        let settings = [
            Setting::IrqAffinity { irq: 38, name },
            Setting::Rps { queue: 0 },
        ];
        let planned = settings.map(|setting| {
            let change = Change::plan(files, &interface, setting, cpu.into()).unwrap();
            change.change().unwrap()
        });
        let mut changes = SettingsGuard::new(self.folder.clone(), files.clone());
        assert!(changes.make(planned.into()).unwrap().is_empty());
        // Killed: nothing is dropped, and the journal is another process's.
        std::mem::forget(changes);
        let mut journal = self.folder.journal_of(std::process::id()).unwrap();
        let mut all = self.folder.all().unwrap().into_iter().flatten();
        let written = all.find(|it| it.pid == journal.pid).unwrap();
        self.folder.remove(&written).unwrap();
        self.recorded.run(pid, started);
        journal = self.folder.journal_of(pid).unwrap();
        journal.changes = written.changes;
        self.folder.write(&journal).unwrap();
    }

    fn restore(&self) -> Report {
        let report = restored(&self.folder, &self.recorded.files);
        report.unwrap_or_else(|failure| panic!("{failure}"))
    }

    #[track_caller]
    fn left(&self, journals: usize, affinity: &str, rps: &str) {
        assert_eq!(self.folder.all().unwrap().len(), journals);
        assert_eq!(self.recorded.get(AFFINITY), affinity);
        assert_eq!(self.recorded.get(RPS), rps);
    }
}

#[test]
fn nothing_to_restore_is_a_success() {
    let recorded = Recorded::virtio();
    let folder = JournalFolder::at(&recorded.path("journals"), &recorded.files);
    let report = restored(&folder, &recorded.files).unwrap();
    assert_eq!(report.done, ["nothing to restore"]);
    assert!(report.problems.is_empty());
    assert!(!recorded.path("journals").exists());
}

#[test]
fn a_killed_captures_changes_are_given_back_once() {
    let machine = Machine::with_capture(PID, 5, "1");
    machine.recorded.end(PID);
    machine.left(1, "1", "00000002");
    let report = machine.restore();
    assert!(report.problems.is_empty(), "{report:?}");
    assert_eq!(
        report.done,
        [
            "restored the RPS CPUs of eth0's queue 0: none",
            "restored the CPUs of interrupt 38 (virtio2-input.0) of eth0: 0",
        ]
    );
    machine.left(0, "0", "00000000");
    assert_eq!(machine.restore().done, ["nothing to restore"]);
}

#[test]
fn the_last_change_is_given_back_first() {
    let machine = Machine::with_capture(PID, 5, "1");
    machine.recorded.end(PID);
    machine.capture(PID + 1, 6, "2");
    machine.recorded.end(PID + 1);
    machine.left(2, "2", "00000004");
    let report = machine.restore();
    assert_eq!((report.done.len(), report.problems.len()), (4, 0));
    machine.left(0, "0", "00000000");
}

#[test]
fn what_somebody_else_set_is_left_alone() {
    let machine = Machine::with_capture(PID, 5, "1");
    machine.recorded.end(PID);
    machine.recorded.put(AFFINITY, "0-1");
    machine.recorded.put(RPS, "0");
    let report = machine.restore();
    assert!(report.problems.is_empty(), "{report:?}");
    assert_eq!(
        report.done,
        [
            "the RPS CPUs of eth0's queue 0 had been restored already: none",
            "left the CPUs of interrupt 38 (virtio2-input.0) of eth0 alone: 0-1 now, not 1 as \
             tscap set it (it was 0 before)",
        ]
    );
    machine.left(0, "0-1", "0");
}

#[test]
fn what_is_gone_is_said() {
    let machine = Machine::with_capture(PID, 5, "1");
    machine.recorded.end(PID);
    machine.recorded.put("proc/interrupts", "");
    let report = machine.restore();
    assert!(report.problems.is_empty(), "{report:?}");
    assert!(
        report.done[1].contains("no CPUs of interrupt 38"),
        "{report:?}"
    );
    machine.left(0, "1", "00000000");
}

#[test]
fn a_running_captures_changes_are_its_own() {
    let machine = Machine::with_capture(PID, 5, "1");
    let report = machine.restore();
    assert!(report.done.is_empty(), "{report:?}");
    assert_eq!(report.problems.len(), 1);
    assert!(report.problems[0].contains("process 77"), "{report:?}");
    assert!(report.problems[0].contains("\nhint: kill 77"), "{report:?}");
    machine.left(1, "1", "00000002");
}

#[test]
fn another_boots_journal_is_dropped() {
    let machine = Machine::with_capture(PID, 5, "1");
    machine
        .recorded
        .put("proc/sys/kernel/random/boot_id", "boot-2");
    let report = machine.restore();
    assert!(report.problems.is_empty(), "{report:?}");
    assert!(
        report.done[0].contains("before the last boot"),
        "{report:?}"
    );
    machine.left(0, "1", "00000002");
}

#[test]
fn what_fails_stays_in_the_journal() {
    let machine = Machine::with_capture(PID, 5, "1");
    machine.recorded.end(PID);
    machine.recorded.put(AFFINITY, "rubbish");
    machine.recorded.put("journals/1-1.json", "rubbish");
    let report = machine.restore();
    assert_eq!(report.problems.len(), 2, "{report:?}");
    assert!(report.problems[0].contains("1-1.json"), "{report:?}");
    assert!(report.problems[1].contains("interrupt 38"), "{report:?}");
    machine.left(2, "rubbish", "00000000");
    machine.recorded.put(AFFINITY, "1");
    let report = machine.restore();
    assert_eq!((report.done.len(), report.problems.len()), (1, 1));
    machine.left(1, "0", "00000000");
}

#[test]
fn what_a_running_capture_has_changed_since_stays_in_the_journal() {
    let machine = Machine::with_capture(PID, 5, "1");
    machine.recorded.end(PID);
    machine.capture(PID + 1, 6, "2");
    let report = machine.restore();
    assert!(report.done.is_empty(), "{report:?}");
    let problems = report.problems.join("\n");
    assert_eq!(
        problems.matches("yet: process 78 is running").count(),
        2,
        "{problems}"
    );
    machine.left(2, "2", "00000004");
    machine.recorded.end(PID + 1);
    assert!(machine.restore().problems.is_empty());
    machine.left(0, "0", "00000000");
}
