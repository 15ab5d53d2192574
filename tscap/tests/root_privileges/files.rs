//! Whose files are, and who can make the next ones.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use tscap_testkit::bench::Bench;
use tscap_testkit::capture::capture_on;
use tscap_testkit::files;
use tscap_testkit::frame::Frame;
use tscap_testkit::packet_socket::PacketSocket;
use tscap_testkit::root::root_with;

use crate::status::{NOBODY, NOBODY_UID};

const PROGRAMS: [&str; 3] = ["ip", "ethtool", "sh"];
/// The group `adm` of Debian, by its number.
const ADM: u32 = 4;

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
    let command = programs.path().join("command");
    let script = "#!/bin/sh\ngrep -E '^(Uid|Cap)' /proc/self/status > $1.status\n";
    fs::write(&command, script).expect("write a script");
    fs::set_permissions(&command, fs::Permissions::from_mode(0o755)).expect("make it a program");
    let path = folder.path().join("out.pcapng");
    let plan = capture_on(&bench.rx, &path).with(["-Z", NOBODY, "--group", &ADM.to_string()]);
    let capture = plan
        .with(["-b", "packets:10", "-z"])
        .with([&command])
        .ready();
    let frame = Frame::new(&bench.tx, &bench.rx, 100);
    PacketSocket::open(&bench.tx).send(&frame, 0..25, 0);
    let finished = capture.stop();
    let told = finished.success().files.expect("several files");
    let commands = told.commands.expect("commands");
    assert_eq!((told.written, commands.succeeded), (3, 3));
    let written: Vec<_> = finished.files().into_iter().map(|it| it.path).collect();
    assert_eq!(written.len(), 3);
    for path in written {
        assert_eq!(files::owner(&path), (NOBODY_UID, ADM), "{path:?}");
        assert_eq!(files::mode(&path), 0o640, "{path:?}");
        let status = fs::read_to_string(format!("{}.status", path.display()));
        let status = status.expect("the command ran");
        let nothing = "0000000000000000";
        for line in status.lines().filter(|line| !line.starts_with("CapBnd")) {
            let is_harmless = line.ends_with(nothing) || line.starts_with("Uid:\t65534\t65534");
            assert!(is_harmless, "{status}");
        }
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
