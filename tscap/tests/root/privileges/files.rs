//! Whose files are, and who can make the next ones.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tscap_testkit::bench::Bench;
use tscap_testkit::capture::capture_on;
use tscap_testkit::files;
use tscap_testkit::frame::Frame;
use tscap_testkit::packet_socket::PacketSocket;
use tscap_testkit::root::root_with;

use super::status::{NOBODY, NOBODY_UID};

const PROGRAMS: [&str; 5] = ["ip", "ethtool", "sh", "unshare", "mount"];
/// The group `adm` of Debian, by its number.
const ADM: u32 = 4;

/// A program that notes beside a file what it may do.
fn command(folder: &Path) -> PathBuf {
    let command = folder.join("command");
    let script = "#!/bin/sh\ngrep -E '^(Uid|Cap|NoNew)' /proc/self/status > $1.status\n";
    files::make_script(&command, script);
    command
}

/// What it noted beside `path`: a command of this user has no privileges, and gets none.
#[track_caller]
fn has_no_privileges(path: &Path, uid: u32) {
    let status = fs::read_to_string(format!("{}.status", path.display()));
    let status = status.expect("the command ran");
    for line in ["CapInh", "CapPrm", "CapEff", "CapAmb"].map(|it| format!("{it}:\t{:016}", 0)) {
        assert!(status.lines().any(|it| it == line), "{line} in\n{status}");
    }
    for line in [
        format!("Uid:\t{uid}\t{uid}\t{uid}\t{uid}"),
        "NoNewPrivs:\t1".into(),
    ] {
        assert!(status.lines().any(|it| it == line), "{line} in\n{status}");
    }
}

/// By the file that the capture writes at the end too.
#[test]
fn commands_have_no_privileges_where_root_stays_root() {
    let Some(_lock) = root_with(&PROGRAMS) else {
        return;
    };
    let bench = Bench::new("drop-cmd");
    let frame = Frame::new(&bench.tx, &bench.rx, 100);
    let programs = files::public_folder();
    let command = command(programs.path());
    // No user: on this machine there may be one by the name of tscap.
    let no_user = "mount --bind /dev/null /etc/passwd && exec \"$0\" \"$@\"";
    for (prefix, user) in [
        (&["env"][..], &["-Z", "root"][..]),
        (&["unshare", "--mount", "sh", "-c", no_user][..], &[][..]),
    ] {
        let folder = files::folder();
        let path = folder.path().join("out.pcapng");
        let plan = capture_on(&bench.rx, &path).through(prefix).with(user);
        let plan = plan.with(["-b", "packets:10", "-z"]).with([&command]);
        let capture = plan.ready();
        PacketSocket::open(&bench.tx).send(&frame, 0..15, 0);
        let finished = capture.stop();
        let reported = finished.success().files.expect("several files");
        assert_eq!(reported.commands.expect("commands").succeeded, 2);
        for it in finished.files() {
            has_no_privileges(&it.path, 0);
        }
    }
}

/// Next files are the user's, a group reads them, and commands have no privileges.
#[test]
fn rotation_and_commands_work_under_the_user() {
    let Some(_lock) = root_with(&PROGRAMS) else {
        return;
    };
    let bench = Bench::new("drop-files");
    let folder = files::folder();
    files::give(folder.path(), NOBODY_UID);
    let programs = files::public_folder();
    let command = command(programs.path());
    let path = folder.path().join("out.pcapng");
    let plan = capture_on(&bench.rx, &path).with(["-Z", NOBODY, "--group", &ADM.to_string()]);
    let capture = plan
        .with(["-b", "packets:10", "-z"])
        .with([&command])
        .ready();
    let frame = Frame::new(&bench.tx, &bench.rx, 100);
    PacketSocket::open(&bench.tx).send(&frame, 0..25, 0);
    let finished = capture.stop();
    let reported = finished.success().files.expect("several files");
    let commands = reported.commands.expect("commands");
    assert_eq!((reported.written, commands.succeeded), (3, 3));
    let written: Vec<_> = finished.files().into_iter().map(|it| it.path).collect();
    assert_eq!(written.len(), 3);
    for path in written {
        assert_eq!(files::owner(&path), (NOBODY_UID, ADM), "{path:?}");
        assert_eq!(files::mode(&path), 0o640, "{path:?}");
        has_no_privileges(&path, NOBODY_UID);
    }
}

/// A user that was asked for must be able to go on; nothing is left of a capture that can't.
#[test]
fn a_user_without_a_folder_for_next_files_is_refused() {
    let Some(_lock) = root_with(&PROGRAMS) else {
        return;
    };
    let bench = Bench::new("drop-not");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let plan = || capture_on(&bench.rx, &path);
    let finished = plan().with(["-Z", NOBODY, "-b", "packets:10"]).run();
    finished.failure(
        1,
        &["cannot go on as nobody", "Permission denied", "-Z root"],
    );
    let metrics = folder.path().join("tscap.prom");
    let finished = plan()
        .with(["-Z", NOBODY, "--metrics-file"])
        .with([&metrics])
        .run();
    finished.failure(1, &["cannot go on as nobody", "Permission denied"]);
    let finished = plan().with(["-Z", "no-such-user"]).run();
    finished.failure(1, &["there is no such user", "hint: give -Z"]);
    let finished = plan().with(["--group", "no-such-group"]).run();
    finished.failure(1, &["there is no such group", "hint: give --group"]);
    assert_eq!(fs::read_dir(folder.path()).expect("the folder").count(), 0);
    // One file is opened before.
    plan()
        .with(["-Z", NOBODY, "-c", "1", "--duration", "0.2"])
        .run()
        .success();
    assert_eq!(files::owner(&path), (NOBODY_UID, 0));
}

/// What was there before keeps its owner and mode.
#[test]
fn an_existing_file_stays_whose_it_was() {
    let Some(_lock) = root_with(&PROGRAMS) else {
        return;
    };
    let bench = Bench::new("drop-old");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    fs::write(&path, "older").expect("write a file");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o604)).expect("set its mode");
    let plan = capture_on(&bench.rx, &path).with(["-Z", NOBODY, "--group", "0"]);
    plan.with(["--duration", "0.2"]).run().success();
    assert_eq!((files::owner(&path), files::mode(&path)), ((0, 0), 0o604));
}

/// Who has started a capture by sudo can read it, also several files; nobody else can.
#[test]
fn a_file_by_sudo_is_of_who_ran_it() {
    let Some(_lock) = root_with(&PROGRAMS) else {
        return;
    };
    let bench = Bench::new("drop-sudo");
    let frame = Frame::new(&bench.tx, &bench.rx, 100);
    let [user, group] = ["UID", "GID"].map(|id| format!("SUDO_{id}={NOBODY_UID}"));
    for (options, files) in [(&[][..], 1), (&["-b", "packets:4"], 3)] {
        // One that the user can make files in, and one that it can't.
        for folder in [files::public_folder(), files::folder()] {
            let path = folder.path().join("out.pcapng");
            let plan = capture_on(&bench.rx, &path).with(options);
            let capture = plan.through(["env", &user, &group]).ready();
            PacketSocket::open(&bench.tx).send(&frame, 0..10, 0);
            capture.stop().success();
            let made = fs::read_dir(folder.path()).expect("the folder");
            let made: Vec<_> = made.map(|it| it.expect("a file").path()).collect();
            assert_eq!(made.len(), files, "{made:?}");
            for path in made {
                assert_eq!(files::owner(&path), (NOBODY_UID, NOBODY_UID), "{path:?}");
                assert_eq!(files::mode(&path), 0o600, "{path:?}");
            }
        }
    }
    // One that was there stays whose it was, and -Z says whose a new one is.
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    for options in [&["-Z", "root"][..], &[]] {
        let plan = capture_on(&bench.rx, &path).with(options);
        let ended = plan
            .with(["--duration", "0.2"])
            .through(["env", &user, &group]);
        ended.run().success();
        assert_eq!(files::owner(&path).0, 0, "{options:?}");
    }
}
