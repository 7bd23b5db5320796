//! The thread that writes what a connection sends, at the times at which a shaped link delivers it.

use std::io::Write;
use std::net::{Shutdown, TcpStream};
use std::sync::mpsc::{Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use ring::cpu::CpuTime;

use crate::transport::link::Slice;

/// Before an arrival the writer sleeps, except for this long: sleeping overshoots.
const AWAKE: Duration = Duration::from_micros(100);

/// What the writer thread does.
pub(super) enum Job {
    /// With the times at which a shaped link delivers the parts; none: at once.
    Bytes(Vec<u8>, Vec<Slice>),
    Flush(Sender<()>),
}

/// Runs on the writer thread until the queue closes or the peer is gone.
pub(super) fn write_all(mut stream: TcpStream, jobs: &Receiver<Job>, time: &CpuTime) {
    let mut counting = time.count();
    for job in jobs {
        match job {
            Job::Bytes(bytes, slices) => {
                if write(&mut stream, &bytes, &slices).is_err() {
                    let _ = stream.shutdown(Shutdown::Both);
                    return;
                }
            }
            Job::Flush(done) => {
                counting.settle();
                let _ = done.send(());
            }
        }
    }
    let _ = stream.shutdown(Shutdown::Write);
}

fn write(stream: &mut TcpStream, bytes: &[u8], slices: &[Slice]) -> std::io::Result<()> {
    let mut done = 0;
    for slice in slices {
        wait_until(slice.arrival);
        stream.write_all(bytes.get(done..slice.end).unwrap_or_default())?;
        done = slice.end;
    }
    stream.write_all(bytes.get(done..).unwrap_or_default())
}

fn wait_until(moment: Instant) {
    loop {
        let left = moment.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        match left.checked_sub(AWAKE) {
            Some(asleep) => thread::sleep(asleep),
            None => thread::yield_now(),
        }
    }
}
