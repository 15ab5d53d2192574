//! What a user may do by the capabilities of the program's file, as members of the group
//! `tscap` have them.

use std::fs::{self, DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use tempfile::TempDir;
use tscap_testkit::bench::Bench;
use tscap_testkit::command::{Done, SHORT, must, run, tscap_path};
use tscap_testkit::files;
use tscap_testkit::netns::Netns;
use tscap_testkit::root::{RootLock, root_with};

const PROGRAMS: [&str; 6] = ["ip", "ethtool", "setpriv", "setcap", "unshare", "mount"];
const CAPABILITIES: &str = "cap_bpf,cap_net_admin,cap_perfmon,cap_net_raw+ep";

/// A user, with a copy of the program whose file has what a capture takes.
struct Member {
    folder: TempDir,
    /// A number that nobody has, of each test another: the folder of journals goes by it.
    uid: u32,
    _lock: RootLock,
}

impl Member {
    fn new(uid: u32) -> Option<Self> {
        let lock = root_with(&PROGRAMS)?;
        let member = Self {
            folder: files::public_folder(),
            uid,
            _lock: lock,
        };
        files::copy_program(tscap_path(), &member.program());
        let mut setcap = Command::new("setcap");
        must(setcap.arg(CAPABILITIES).arg(member.program()));
        Some(member)
    }

    fn program(&self) -> PathBuf {
        self.folder.path().join("tscap")
    }

    /// Where its journals are.
    fn journals(&self) -> PathBuf {
        format!("/tmp/tscap-{}", self.uid).into()
    }

    /// `setpriv` with what makes a process the member's.
    fn setpriv(&self) -> [String; 4] {
        let uid = self.uid;
        [
            "setpriv".into(),
            format!("--reuid={uid}"),
            format!("--regid={uid}"),
            "--clear-groups".into(),
        ]
    }

    fn file(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// The program with `words`, run by the member in `netns`, where the administrator's file
    /// says `allowed`.
    fn run(&self, netns: &Netns, allowed: &str, words: &[&str]) -> Done {
        let etc = "mount -t tmpfs none /etc && mkdir /etc/tscap && printf %s \"$0\" \
                   >/etc/tscap/members && exec \"$@\"";
        let mut command = netns.command("unshare");
        command.args(["--mount", "sh", "-c", etc, allowed]);
        command.args(self.setpriv());
        command.arg(self.program()).args(words);
        command.stdin(Stdio::null());
        run(&mut command, SHORT)
    }
}

#[track_caller]
fn refused(done: &Done, what: &str, word: &str) {
    let line = format!("a line {word} in /etc/tscap/members");
    assert_eq!(done.status.code(), Some(1), "{}", done.stderr);
    for part in [what, &line] {
        assert!(done.stderr.contains(part), "{part} in\n{}", done.stderr);
    }
}

/// Members capture; what else the capabilities would allow is root's, or the administrator's
/// to allow.
#[test]
fn a_member_captures_and_the_rest_is_the_administrators_to_allow() {
    let Some(member) = Member::new(64_998) else {
        return;
    };
    let bench = Bench::new("member");
    let (netns, rx, tx) = (&bench.rx.netns, &*bench.rx.name, &*bench.tx.name);
    let out = member.file("out.pcapng");
    let capture = ["capture", "-i", rx, "-w", &out, "--duration", "0.2"];
    let done = member.run(netns, "", &capture);
    assert!(done.status.success(), "{}", done.stderr);
    let sending = [
        "gen", "-i", tx, "--sender", "packet", "--rate", "1k", "-c", "5",
    ];
    let done = member.run(&bench.tx.netns, "", &sending);
    assert!(done.status.success(), "{}", done.stderr);

    bench.rx.offload("rx-vlan-offload", true);
    let before = bench.rx.offloads();
    let stamp = ["stamp", "-i", rx, "--duration", "0.2"];
    let off = [&capture[..], &["--offloads", "off"]].concat();
    let tap = [&capture[..], &["-Q", "in", "--tap=force"]].concat();
    let send = [&sending[..], &["--src", "10.1.1.1"]].concat();
    for (netns, words, what, word) in [
        (netns, &stamp[..], "receive times", "stamp"),
        (netns, &off, "change settings", "change-settings"),
        (netns, &tap, "--tap=force", "take-interface"),
        (&bench.tx.netns, &send, "send frames", "send"),
    ] {
        refused(&member.run(netns, "# nothing\n", words), what, word);
        let others = ["stamp", "change-settings", "take-interface", "send"];
        let others = others.into_iter().filter(|it| *it != word);
        let others: Vec<_> = others.collect();
        refused(&member.run(netns, &others.join("\n"), words), what, word);
        let done = member.run(netns, &format!("{word}\n"), words);
        assert!(done.status.success(), "{words:?}: {}", done.stderr);
    }
    assert_eq!(bench.rx.offloads(), before);
    fs::remove_dir_all(member.journals()).expect("its folder of journals");
}

fn begin(boot_id: &str) -> String {
    format!(
        "{{\"journal\":{{\"v\":4,\"boot_id\":\"{boot_id}\",\"pid\":1,\"started\":1,\
         \"changes\":[]}},\"is_elsewhere\":false}}"
    )
}

/// A journal that a member made would have offloads turned off for good: neither `restore` nor
/// the process that captures start takes one.
#[test]
fn a_members_journal_changes_nothing() {
    let Some(member) = Member::new(64_997) else {
        return;
    };
    let bench = Bench::new("member-jrnl");
    let netns = &bench.rx.netns;
    let done = member.run(netns, "", &["restore"]);
    assert!(done.status.success(), "nothing is there: {}", done.stderr);
    let journals = member.journals();
    DirBuilder::new()
        .mode(0o700)
        .create(&journals)
        .expect("a folder of the user's");
    let forged = journals.join("1-1.json");
    fs::write(&forged, begin("")).expect("a journal");
    for path in [&journals, &forged] {
        files::give(path, member.uid);
    }
    refused(
        &member.run(netns, "", &["restore"]),
        "restore them",
        "change-settings",
    );
    fs::remove_dir_all(&journals).expect("remove the folder");

    let keeper = |input: &str| {
        let [setpriv, words @ ..] = member.setpriv();
        let mut command = netns.command(&setpriv);
        command.args(words);
        command.arg(member.program()).arg("keep-settings");
        let file = member.folder.path().join("request");
        fs::write(&file, input).expect("a request");
        command.stdin(fs::File::open(&file).expect("it"));
        run(&mut command, SHORT)
    };
    let done = keeper(&begin("x"));
    let reported = "no command has started this process";
    assert_eq!(done.status.code(), Some(1), "{}", done.stderr);
    assert!(done.stderr.contains(reported), "{}", done.stderr);
}

/// As the packages install it: the program is everybody's, and goes on as a copy with the
/// capabilities for who may execute that.
#[test]
fn the_program_goes_on_as_its_copy_for_members_alone() {
    const GROUP: u32 = 64_996;
    let Some(_lock) = root_with(&PROGRAMS) else {
        return;
    };
    let bench = Bench::new("member-copy");
    let folder = files::public_folder();
    let program = folder.path().join("bin/tscap");
    let copy = folder.path().join("libexec/tscap/tscap");
    for path in [&program, &copy] {
        fs::create_dir_all(path.parent().expect("it")).expect("folders");
        files::copy_program(tscap_path(), path);
    }
    std::os::unix::fs::chown(&copy, None, Some(GROUP)).expect("give it to a group");
    fs::set_permissions(&copy, Permissions::from_mode(0o750)).expect("set its mode");
    must(Command::new("setcap").arg(CAPABILITIES).arg(&copy));
    let out = folder.path().join("out.pcapng");
    let as_one_of = |group: u32, words: &[&str]| {
        let mut command = bench.rx.netns.command("setpriv");
        command.args([
            "--reuid=64995",
            &format!("--regid={group}"),
            "--clear-groups",
        ]);
        run(command.arg(&program).args(words), SHORT)
    };
    let out = out.to_str().expect("UTF-8");
    let capture = [
        "capture",
        "-i",
        &bench.rx.name,
        "-w",
        out,
        "--duration",
        "0.2",
    ];
    let done = as_one_of(GROUP, &capture);
    assert!(done.status.success(), "{}", done.stderr);
    let done = as_one_of(64_995, &capture);
    assert_eq!(done.status.code(), Some(1));
    let reported = format!("as a member of the group {GROUP}: `sudo adduser USER {GROUP}`");
    assert!(done.stderr.contains(&reported), "{}", done.stderr);
    for words in [
        &["--help"][..],
        &["convert", "--help"],
        &["report", "--help"],
    ] {
        let done = as_one_of(64_995, words);
        assert!(done.status.success(), "{words:?}: {}", done.stderr);
    }
}
