//! systemd's journal: what arrives on its socket, and in a journal that journald writes.

use std::collections::BTreeMap;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use tscap_testkit::bench::Bench;
use tscap_testkit::capture::{LIMIT, Plan, capture_on};
use tscap_testkit::command::{must, tscap_path};
use tscap_testkit::files;
use tscap_testkit::frame::Frame;
use tscap_testkit::packet_socket::PacketSocket;
use tscap_testkit::root::{root, root_with};

/// Gives a program, in the mount namespace that `ip netns exec` has made for it, the folder
/// `$0` as journald's, and standard error as a stream of journald's.
const UNDER_JOURNALD: &str = r#"
mount -t tmpfs tmpfs /run && mkdir -p /run/systemd/journal &&
mount --bind "$0" /run/systemd/journal &&
export JOURNAL_STREAM=$(stat -L -c %d:%i /proc/self/fd/2) && exec "$@""#;

type Entry = BTreeMap<String, String>;

/// A journald of the test's own.
struct Journald(UnixDatagram);

impl Journald {
    fn at(folder: &Path) -> Self {
        let socket = UnixDatagram::bind(folder.join("socket")).expect("a socket");
        socket.set_read_timeout(Some(LIMIT)).expect("a limit");
        Self(socket)
    }

    /// The next entry.
    fn receive(&self) -> Entry {
        let mut buffer = vec![0; 1 << 20];
        let length = self.0.recv(&mut buffer).expect("an entry in time");
        let (mut rest, mut entry) = (&buffer[..length], Entry::new());
        while !rest.is_empty() {
            let end = rest.iter().position(|it| matches!(it, b'=' | b'\n'));
            let end = end.expect("the end of a name");
            let name = String::from_utf8(rest[..end].to_vec()).expect("UTF-8");
            let is_long = rest[end] == b'\n';
            rest = &rest[end + 1..];
            let length = if is_long {
                let (length, behind) = rest.split_first_chunk().expect("a length");
                rest = behind;
                usize::try_from(u64::from_le_bytes(*length)).expect("a length")
            } else {
                rest.iter().position(|it| *it == b'\n').expect("an end")
            };
            let value = String::from_utf8(rest[..length].to_vec()).expect("UTF-8");
            assert_eq!(rest[length], b'\n', "the end of {name}");
            rest = &rest[length + 1..];
            assert_eq!(entry.insert(name.clone(), value), None, "{name} twice");
        }
        entry
    }

    /// Waits for an entry whose message begins so.
    fn wait_for(&self, start: &str) -> Entry {
        loop {
            let entry = self.receive();
            assert_eq!(entry["SYSLOG_IDENTIFIER"], "tscap", "{entry:?}");
            if entry["MESSAGE"].starts_with(start) {
                return entry;
            }
        }
    }
}

fn under<'a>(plan: Plan<'a>, folder: &Path) -> Plan<'a> {
    let folder = folder.to_str().expect("UTF-8");
    plan.through(["sh", "-c", UNDER_JOURNALD, folder]).human()
}

#[test]
fn the_account_is_in_fields_and_each_message_has_a_priority() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("journal");
    let folder = files::folder();
    let journald = Journald::at(folder.path());
    // A name that is warned of.
    let file = folder.path().join("out.pcap");
    let plan = capture_on(&bench.rx, &file).with(["-v", "less 100"]);
    let capture = under(plan, folder.path()).start();
    assert_eq!(journald.wait_for("warning: ")["PRIORITY"], "4");
    assert_eq!(journald.wait_for("converter pinned")["PRIORITY"], "7");
    assert_eq!(journald.wait_for("ready: ")["PRIORITY"], "6");
    let socket = PacketSocket::open(&bench.tx);
    socket.send(&Frame::new(&bench.tx, &bench.rx, 60), 0..20, 0);
    socket.send(&Frame::new(&bench.tx, &bench.rx, 600), 0..5, 0);
    let finished = capture.stop();
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    assert_eq!(finished.stderr, "", "all of it is in the journal");
    let summary = journald.wait_for(file.to_str().expect("UTF-8"));
    let number = |name: &str| summary[name].parse::<u64>().expect("a number");
    let (seen, filtered) = (number("TSCAP_SEEN"), number("TSCAP_FILTERED"));
    assert!(seen >= 25 && filtered >= 5, "{summary:?}");
    assert_eq!(number("TSCAP_WRITTEN") + filtered, seen);
    assert_eq!(number("TSCAP_RING_FULL"), 0);
    assert_eq!(number("TSCAP_ADDS_UP"), 1);
    assert_eq!(number("TSCAP_BYTES_WRITTEN"), files::length(&file));
    assert!(summary["MESSAGE"].contains("exactly"), "{summary:?}");
    assert_eq!(summary["TSCAP_STOPPED_BY"], "stopped by a signal");
    assert_eq!(summary["MESSAGE_ID"].len(), 32);
    assert_eq!(summary["PRIORITY"], "6");
}

#[test]
fn a_failure_is_an_error_and_nothing_is_lost_without_journald() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("journal-failure");
    let folder = files::folder();
    let plan = || {
        let plan = capture_on(&bench.rx, &folder.path().join("out.pcapng"));
        under(plan.with(["-i", "nosuch0"]), folder.path())
    };
    let without = plan().run();
    without.failure(1, &["nosuch0", "hint: "]);
    let journald = Journald::at(folder.path());
    let finished = plan().run();
    assert_eq!((finished.code, finished.stderr.as_str()), (Some(1), ""));
    let failure = journald.wait_for("tscap: ");
    assert_eq!(failure["PRIORITY"], "3");
    assert!(failure["MESSAGE"].contains("\nhint: "), "{failure:?}");
}

/// A stream that the environment names, and that is not standard error, is somebody else's.
#[test]
fn another_stream_is_not_taken_for_the_journal() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("journal-other");
    let folder = files::folder();
    let plan = capture_on(&bench.rx, &folder.path().join("out.pcapng"));
    let other = plan.through(["env", "JOURNAL_STREAM=1:1"]).ready();
    let finished = other.stop();
    finished.success();
}

#[test]
fn journald_itself_takes_the_entries() {
    const JOURNALD: &str = "/lib/systemd/systemd-journald";
    let programs = &[JOURNALD, "journalctl", "unshare", "nsenter"];
    let Some(_lock) = root_with(programs) else {
        return;
    };
    let bench = Bench::new("journald");
    let folder = files::folder();
    let script = r#"
        for folder in systemd log; do
            mkdir -p /run/$folder && mount -t tmpfs tmpfs /run/$folder
        done
        mkdir -p /run/systemd/journal /run/log/journal
        echo 0123456789abcdef0123456789abcdef > /run/systemd/id
        [ -e /etc/machine-id ] || : > /etc/machine-id
        mount --bind /run/systemd/id /etc/machine-id
        "$0" & journald=$!
        until [ -S /run/systemd/journal/socket ]; do sleep 0.05; done
        sh -c 'export JOURNAL_STREAM=$(stat -L -c %d:%i /proc/self/fd/2); exec "$@"' sh "$@"
        journalctl --sync
        journalctl -o json MESSAGE_ID=8eae17fdc1a8403f97b1e25711999a7f
        kill $journald; wait $journald"#;
    // In a PID namespace, so that nothing outlives it.
    let mut command = Command::new("unshare");
    let file = folder.path().join("out.pcapng");
    let netns = format!("--net=/run/netns/{}", bench.rx.netns.name());
    command.args([
        "-p",
        "-f",
        "-m",
        "--mount-proc",
        "sh",
        "-c",
        script,
        JOURNALD,
    ]);
    command.args(["nsenter", &netns, tscap_path(), "capture", "-w"]);
    command
        .arg(&file)
        .args(["-i", &bench.rx.name, "--duration", "1"]);
    let out = must(&mut command);
    let entry: Value = serde_json::from_str(out.trim()).expect("one entry");
    let seen = entry["TSCAP_SEEN"].as_str().expect("a field");
    assert_eq!(entry["TSCAP_WRITTEN"], seen);
    assert_eq!(entry["SYSLOG_IDENTIFIER"], "tscap");
    assert_eq!(entry["TSCAP_FILE"], file.to_str().expect("UTF-8"));
    assert_eq!(entry["_TRANSPORT"], "journal");
}
