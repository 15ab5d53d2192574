//! Places that can't be written to.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use nix::sys::signal::Signal;
use nix::sys::stat::Mode;
use tscap_testkit::bench::Bench;
use tscap_testkit::capture::capture_on;
use tscap_testkit::files;
use tscap_testkit::frame::Frame;
use tscap_testkit::packet_socket::PacketSocket;
use tscap_testkit::recording::Recording;
use tscap_testkit::root::{root, root_with};

#[test]
fn missing_folder_and_folder() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("folders");
    let folder = files::folder();
    let missing = folder.path().join("missing/out.pcapng");
    let finished = capture_on(&bench.rx, &missing).run();
    finished.failure(
        1,
        &[missing.to_str().expect("a UTF-8 path"), "no such file"],
    );
    let finished = capture_on(&bench.rx, folder.path()).run();
    finished.failure(
        1,
        &[folder.path().to_str().expect("a UTF-8 path"), "directory"],
    );
    assert_eq!((bench.rx.xdp_program(), bench.rx.promiscuity()), (None, 0));
}

#[test]
fn unwritable_file_is_left_as_it_is() {
    let programs = ["ip", "ethtool", "setpriv"];
    let Some(_lock) = root_with(&programs) else {
        return;
    };
    let bench = Bench::new("unwritable");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    std::fs::write(&path, "someone else's").expect("write a file");
    std::os::unix::fs::chown(&path, Some(65_534), None).expect("give the file away");
    let read_only = std::fs::Permissions::from_mode(0o444);
    std::fs::set_permissions(&path, read_only).expect("make the file read-only");
    // Root that may not override permissions.
    let plan = capture_on(&bench.rx, &path);
    let finished = plan
        .through(["setpriv", "--bounding-set=-dac_override"])
        .run();
    finished.failure(
        1,
        &[path.to_str().expect("a UTF-8 path"), "permission denied"],
    );
    assert_eq!(std::fs::read(&path).expect("read it"), b"someone else's");
}

#[test]
fn a_full_device() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("full");
    let finished = capture_on(&bench.rx, Path::new("/dev/full")).run();
    finished.failure(1, &["/dev/full", "no space"]);
    assert_eq!((bench.rx.xdp_program(), bench.rx.promiscuity()), (None, 0));
    assert!(Path::new("/dev/full").exists(), "a device is not removed");
}

#[test]
fn a_full_disk_at_the_start_leaves_no_half_header() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("start-full");
    let disk = files::SmallDisk::new(64 * 1024);
    // Nothing left of it.
    let _ = std::fs::write(disk.file("filler"), vec![0; 128 * 1024]);
    let path = disk.file("out.pcapng");
    let finished = capture_on(&bench.rx, &path).run();
    finished.failure(1, &[path.to_str().expect("a UTF-8 path"), "no space"]);
    assert!(!path.exists(), "a file that nothing is in was left");
    assert_eq!(bench.rx.xdp_program(), None);
}

#[test]
fn dev_null_takes_everything() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("null");
    let frame = Frame::new(&bench.tx, &bench.rx, 60);
    let capture = capture_on(&bench.rx, Path::new("/dev/null")).ready();
    PacketSocket::open(&bench.tx).send(&frame, 0..100, 0);
    assert_eq!(capture.stop().success().written, 100);
}

#[test]
fn a_failed_start_does_not_destroy_an_older_file() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("older");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    std::fs::write(&path, "an older capture").expect("write a file");
    let other = tscap_testkit::probes::Attached::pass(&bench.rx, aya::programs::XdpMode::Driver);
    capture_on(&bench.rx, &path)
        .with(["--hook", "xdp"])
        .run()
        .failure(1, &["rx0", &other.id.to_string()]);
    assert_eq!(std::fs::read(&path).expect("read it"), b"an older capture");
}

#[test]
fn waiting_for_the_reader_of_a_named_pipe_can_be_ended() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("fifo");
    let folder = files::folder();
    let path = folder.path().join("pipe");
    nix::unistd::mkfifo(&path, Mode::S_IRUSR | Mode::S_IWUSR).expect("make a named pipe");
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let capture = capture_on(&bench.rx, &path).start();
        capture.wait_line("note: waiting for a reader");
        let finished = capture.stop_with(signal);
        assert_eq!(finished.code, Some(0), "{}", finished.stderr);
        assert_eq!(bench.rx.xdp_program(), None);
        assert!(path.exists(), "the pipe is not tscap's to remove");
    }
}

#[test]
fn a_failed_start_leaves_a_link_to_nothing_as_it_was() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("dangling");
    let folder = files::folder();
    let [link, target] = ["link", "target"].map(|name| folder.path().join(name));
    std::os::unix::fs::symlink("target", &link).expect("make a link");
    let other = tscap_testkit::probes::Attached::pass(&bench.rx, aya::programs::XdpMode::Driver);
    let plan = capture_on(&bench.rx, &link);
    let failed = plan.with(["--hook", "xdp"]).run();
    failed.failure(1, &["rx0", &other.id.to_string()]);
    assert!(link.is_symlink() && !target.exists());
}

#[test]
fn a_file_has_one_capture_at_a_time() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("locked");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let frame = Frame::new(&bench.tx, &bench.rx, 60);
    let first = capture_on(&bench.rx, &path).ready();
    PacketSocket::open(&bench.tx).send(&frame, 0..10, 0);
    let name = path.to_str().expect("a UTF-8 path");
    let second = capture_on(&bench.tx, &path).run();
    second.failure(1, &[name, "another capture is writing it"]);
    assert_eq!(first.stop().success().written, 10);
    assert_eq!(Recording::read(&path).packets.len(), 10);
    assert_eq!(files::mode(&path), 0o600);
}

#[test]
fn a_file_that_is_not_what_was_written_is_told() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("tampered");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let frame = Frame::new(&bench.tx, &bench.rx, 60);
    let socket = PacketSocket::open(&bench.tx);
    type Change = fn(&Path);
    let changes: [(Change, &str); 3] = [
        (
            |path| std::fs::remove_file(path).expect("remove it"),
            "removed meanwhile",
        ),
        (
            |path| drop(std::fs::File::create(path).expect("empty it")),
            "changed it meanwhile",
        ),
        (
            |path| {
                let mut options = std::fs::OpenOptions::new();
                let mut file = options.append(true).open(path).expect("open it");
                std::io::Write::write_all(&mut file, b"text").expect("add to it");
            },
            "changed it meanwhile",
        ),
    ];
    for (change, reported) in changes {
        let capture = capture_on(&bench.rx, &path).ready();
        socket.send(&frame, 0..10, 0);
        change(&path);
        socket.send(&frame, 10..20, 0);
        let finished = capture.stop();
        finished.failure(1, &[path.to_str().expect("a UTF-8 path"), reported]);
        assert_eq!(finished.accounted().seen, 20);
    }
    // Under another name it is whole.
    let capture = capture_on(&bench.rx, &path).ready();
    let moved = folder.path().join("moved.pcapng");
    std::fs::rename(&path, &moved).expect("rename it");
    socket.send(&frame, 0..10, 0);
    let finished = capture.stop();
    finished.success();
    assert!(
        finished.stderr.contains("was renamed meanwhile"),
        "{}",
        finished.stderr
    );
    assert_eq!(Recording::read(&moved).packets.len(), 10);
}

/// It would choose which file is emptied.
#[test]
fn a_link_of_another_user_in_a_folder_of_everybody_is_refused() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("sticky");
    let folder = files::folder();
    let sticky = std::fs::Permissions::from_mode(0o1777);
    std::fs::set_permissions(folder.path(), sticky).expect("make it as /tmp is");
    let [link, file] = ["link", "file"].map(|name| folder.path().join(name));
    std::fs::write(&file, "root's").expect("write a file");
    std::os::unix::fs::symlink("file", &link).expect("make a link");
    std::os::unix::fs::lchown(&link, Some(65_534), None).expect("give the link away");
    let refused = capture_on(&bench.rx, &link).run();
    refused.failure(1, &["link", "symbolic link of another user"]);
    assert_eq!(std::fs::read(&file).expect("read it"), b"root's");
}
