//! One run of a case: where its secrets come from, and what is done while its kernel runs.

use std::hint::black_box;
use std::time::{Duration, Instant};

use ring::Random;
use wire::fuzzing::fed;
use wire::testing::run_pair;
use wire::{Channel, Role};

use crate::request;

/// What watches a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Watch {
    /// Nothing: the run is only there for its messages.
    Nothing,
    /// Memcheck, for which secrets are undefined.
    Memcheck,
    /// A clock.
    Clock,
}

/// A run of a case. All secrets follow from its seed.
pub struct Run {
    watch: Watch,
    seed: u64,
    secrets: Random,
    times: Vec<(&'static str, Duration)>,
}

/// One party's end of a protocol.
pub struct End<'a> {
    /// The party's secrets.
    pub run: &'a mut Run,
    /// What correlations are dealt from: both parties' ends have the same.
    pub dealer: Random,
    /// The way to the other party.
    pub channel: &'a mut Channel,
}

impl Run {
    /// A run under valgrind.
    pub fn under_memcheck(seed: u64) -> Self {
        Self::new(Watch::Memcheck, seed)
    }

    /// A run against the clock.
    pub fn timed(seed: u64) -> Self {
        Self::new(Watch::Clock, seed)
    }

    fn new(watch: Watch, seed: u64) -> Self {
        Self { watch, seed, secrets: generator(watch, seed), times: Vec::new() }
    }

    /// `count` secret integers of `bits` bits.
    pub fn words(&mut self, count: usize, bits: u32) -> Vec<u64> {
        self.secrets.uniform(count, bits)
    }

    /// `count` secret signed integers of magnitude up to 2^(bits - 1).
    pub fn signed(&mut self, count: usize, bits: u32) -> Vec<i64> {
        let half = 1i64 << (bits - 1);
        self.words(count, bits).into_iter().map(|word| word as i64 - half).collect()
    }

    /// A generator with a secret key: all that it draws is secret.
    pub fn random(&mut self) -> Random {
        self.secrets.child()
    }

    /// Marks values as public. The caller says why they are.
    pub fn publish<T: Copy>(&self, values: &mut [T]) {
        if self.watch == Watch::Memcheck {
            request::make_defined(values);
        }
    }

    /// Runs a kernel, and takes its time under the name of `part`.
    pub fn kernel<T>(&mut self, part: &'static str, kernel: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = black_box(kernel());
        self.times.push((part, start.elapsed()));
        result
    }

    /// Like [`Run::kernel`], for a kernel that draws secrets on its way.
    pub fn kernel_of<T>(&mut self, part: &'static str, kernel: impl FnOnce(&mut Self) -> T) -> T {
        let start = Instant::now();
        let result = black_box(kernel(self));
        self.times.push((part, start.elapsed()));
        result
    }

    /// Returns the times of the kernels.
    pub fn into_times(self) -> Vec<(&'static str, Duration)> {
        self.times
    }

    /// Runs both ends of a protocol, one after the other.
    ///
    /// Both run together first, unwatched, for their messages. Then each end runs alone on what the
    /// other one sent. Messages are public: what an end sends is not looked at again, and what it
    /// receives is defined.
    ///
    /// # Panics
    /// When an end does.
    pub fn ends(&mut self, client: impl Fn(&mut End) + Sync, server: impl Fn(&mut End) + Sync) {
        let seed = self.seed;
        let unwatched = |end: &(dyn Fn(&mut End) + Sync), channel: &mut Channel| {
            Self::new(Watch::Nothing, seed).end(end, channel);
        };
        let (from_client, from_server) =
            run_pair(|channel| unwatched(&client, channel), |channel| unwatched(&server, channel));
        let alone = |role, frames: Vec<Vec<u8>>| fed(role, &frames.concat(), usize::MAX);
        self.end(&client, &mut alone(Role::Client, from_server.frames));
        self.end(&server, &mut alone(Role::Server, from_client.frames));
    }

    /// Like [`Run::ends`], but nothing watches the client's end, which may branch on what it learns.
    ///
    /// # Panics
    /// When an end does.
    pub fn server_end(
        &mut self,
        client: impl Fn(&mut End) + Sync,
        server: impl Fn(&mut End) + Sync,
    ) {
        let seed = self.seed;
        let unwatched = |end: &(dyn Fn(&mut End) + Sync), channel: &mut Channel| {
            Self::new(Watch::Nothing, seed).end(end, channel);
        };
        let (from_client, _) =
            run_pair(|channel| unwatched(&client, channel), |channel| unwatched(&server, channel));
        self.end(&server, &mut fed(Role::Server, &from_client.frames.concat(), usize::MAX));
    }

    fn end(&mut self, end: &(dyn Fn(&mut End) + Sync), channel: &mut Channel) {
        // The parties' secrets differ, and the dealer's from both.
        let role = channel.role() as u64;
        self.secrets = generator(self.watch, self.seed ^ (role + 1) << 62);
        let dealer = generator(self.watch, !self.seed);
        end(&mut End { run: self, dealer, channel });
    }
}

impl End<'_> {
    /// Runs the end's kernel, and takes its time under the name of its role.
    pub fn kernel<T>(&mut self, kernel: impl FnOnce(&mut Channel) -> T) -> T {
        let part = match self.channel.role() {
            Role::Client => "client",
            Role::Server => "server",
        };
        let channel = &mut *self.channel;
        self.run.kernel(part, || kernel(channel))
    }
}

/// A generator whose key is secret.
fn generator(watch: Watch, seed: u64) -> Random {
    let mut seed = [seed];
    if watch == Watch::Memcheck {
        request::make_undefined(&mut seed);
    }
    // A key of which all bits depend on the seed.
    Random::seeded(black_box(seed[0])).child()
}
