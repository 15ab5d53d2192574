//! What can't be written to in several files.

use std::path::Path;

use nix::sys::stat::Mode;
use tscap_testkit::bench::Bench;
use tscap_testkit::capture::capture_on;
use tscap_testkit::files;
use tscap_testkit::root::root;

#[test]
fn pipes_and_devices() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("pipes");
    let folder = files::folder();
    let pipe = folder.path().join("pipe");
    nix::unistd::mkfifo(&pipe, Mode::S_IRWXU).expect("make a named pipe");
    for path in [&pipe, Path::new("/dev/null"), Path::new("/dev/stderr")] {
        let finished = capture_on(&bench.rx, path).with(["-C", "1"]).run();
        let name = path.to_str().expect("a UTF-8 path");
        finished.failure(1, &[name, "no regular file", "-C, -G and -b"]);
        assert_eq!(bench.rx.xdp_program(), None);
    }
}

#[test]
fn a_folder_that_is_not_there() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("nowhere");
    let folder = files::folder();
    let path = folder.path().join("%Y/out");
    let finished = capture_on(&bench.rx, &path).with(["-G", "1"]).run();
    finished.failure(1, &["/20", "no such file"]);
}
