//! Measuring one operation between two processes.

use std::net::{SocketAddr, TcpListener};

use lab::{Bench, Host, Measured, Operation};
use runtime::{Asking, Report, Settings};
use wire::fleet::Amount;
use wire::{Error, Identity, Link, Pin, Result, Role, ServerTls, Timeouts};

use crate::serving::{ServeOptions, settings};
use crate::session::{PredictOptions, link, open, threads};

/// The server of one measurement. Its key lives as long as it does.
pub struct BenchServer {
    host: Host,
    listener: TcpListener,
    tls: Option<ServerTls>,
    /// The pin of the server's key; `None` in plaintext.
    pub pin: Option<Pin>,
    link: Option<Link>,
    timeouts: Timeouts,
}

impl BenchServer {
    /// Prepares `operation` and binds any free port of the loopback interface. Of
    /// `options`, source of correlated OTs, preparation, threads, network, timeout and whether
    /// there is TLS count.
    ///
    /// # Errors
    /// [`Error::Misuse`] for sizes and widths that no protocol has.
    pub fn bind(operation: Operation, options: &ServeOptions) -> Result<Self> {
        let host = Host::new(operation, settings(options)?, threads(options.threads)?)?;
        let failed = |e: std::io::Error| Error::transport(format!("cannot listen: {e}"));
        let listener = TcpListener::bind("127.0.0.1:0").map_err(failed)?;
        let (tls, pin) = match options.tls {
            None => (None, None),
            Some(_) => {
                let identity = Identity::ephemeral()?;
                let pin = identity.pin()?;
                (Some(ServerTls::new(identity, None)?), Some(pin))
            }
        };
        let (link, timeouts) = (link(options.network.as_deref())?, options.timeouts.timeouts()?);
        Ok(Self { host, listener, tls, pin, link, timeouts })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// [`Error::Transport`] when the socket is gone.
    pub fn address(&self) -> Result<SocketAddr> {
        self.listener.local_addr().map_err(|e| Error::transport(e.to_string()))
    }

    /// Serves one client.
    ///
    /// # Errors
    /// [`Error::Peer`], [`Error::Transport`].
    pub fn run(&self) -> Result<Report> {
        let (stream, _) = self.listener.accept().map_err(|e| Error::transport(e.to_string()))?;
        let mut channel = match &self.tls {
            Some(tls) => tls.channel(stream, self.timeouts),
            None => wire::plaintext(Role::Server, stream, self.timeouts),
        }?;
        if let Some(link) = self.link {
            channel.shape(link)?;
        }
        self.host.run(&mut channel)
    }
}

/// Measures `operation` with the [`BenchServer`] at `server` (HOST:PORT), and checks
/// its result. Both parties get the same `settings` and the same network.
///
/// # Errors
/// [`Error::Misuse`] for operations and options that do not fit, [`Error::Peer`],
/// [`Error::Transport`].
pub fn bench(
    operation: Operation,
    settings: Settings,
    server: &str,
    options: &PredictOptions,
) -> Result<Measured> {
    let settings = settings.planned_for(link(options.network.as_deref())?);
    let bench = Bench::new(operation, settings, threads(options.threads.unwrap_or(1))?)?;
    // Benches are no sessions, and no door names a server for them.
    let direct = PredictOptions { follow: false, ..options.clone() };
    let asked = (Asking::default(), Amount::Runs(1));
    bench.run(&mut open(server, &direct, asked, &|_| ())?)
}
