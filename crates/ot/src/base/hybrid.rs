//! Base OTs as a setup has them: the classical half, alone or with the lattice half.

use ring::{Prg, Seed};
use wire::{Channel, Cost, Error, Result, Role};

use super::lattice::{self, Capsules, Half, Keys};
use super::{COUNT, Choices, Offer};
use crate::session::Domain;

/// What base OTs rest on. Both parties use the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum BaseOts {
    /// Diffie-Hellman over Ristretto; the choices are hidden from everybody.
    #[default]
    Classical,
    /// Diffie-Hellman and ML-KEM-768: a key that was not chosen stays hidden while either holds, the
    /// choices while ML-KEM-768 does.
    Hybrid,
}

/// What the chooser sends.
pub(crate) struct Request {
    choices: Choices,
    keys: Option<Keys>,
}

/// What the offerer sends.
pub(crate) struct Response {
    offer: Offer,
    capsules: Option<Capsules>,
}

/// The chooser, waiting for the [`Response`].
pub(crate) struct Chooser {
    classical: super::Chooser,
    lattice: Option<lattice::Chooser>,
}

/// Makes the request for choice bits (0 or 1).
pub(crate) fn choose(
    domain: &Domain,
    base: BaseOts,
    rng: &mut Prg,
    bits: &[u8],
) -> (Chooser, Request) {
    let (classical, choices) = super::choose(domain, rng, bits);
    let lattice = (base == BaseOts::Hybrid).then(|| lattice::choose(domain, rng, bits));
    let (lattice, keys) = lattice.unzip();
    (Chooser { classical, lattice }, Request { choices, keys })
}

impl Chooser {
    /// The chosen keys, and a digest of what the offerer said.
    ///
    /// # Errors
    /// [`Error::Peer`] when the response has another number of anything.
    pub(crate) fn finish(
        self,
        domain: &Domain,
        response: &Response,
    ) -> Result<(Vec<Seed>, [u8; 32])> {
        let half = match (self.lattice, &response.capsules) {
            (None, None) => None,
            (Some(lattice), Some(capsules)) => {
                let (secrets, transcript) = lattice.finish(domain, capsules)?;
                Some(Half { secrets, transcript })
            }
            _ => return Err(Error::internal("base OTs of two kinds in one setup")),
        };
        let bound = response.bound(domain, half.as_ref());
        Ok((self.classical.finish(domain, &response.offer, half.as_ref())?, bound))
    }
}

/// The pairs of keys, the response, and a digest of it.
///
/// # Errors
/// [`Error::Peer`] when the request is not for 128 OTs.
pub(crate) fn offer(
    domain: &Domain,
    rng: &mut Prg,
    request: &Request,
) -> Result<(Vec<[Seed; 2]>, Response, [u8; 32])> {
    let Some(keys) = &request.keys else {
        let (pairs, offer) = super::offer(domain, rng, &request.choices, None)?;
        let response = Response { offer, capsules: None };
        let bound = response.bound(domain, None);
        return Ok((pairs, response, bound));
    };
    let (secrets, capsules, transcript) = lattice::offer(domain, rng, keys)?;
    let halves = secrets.map(|secrets| Half { secrets, transcript });
    let (pairs, offer) = super::offer(domain, rng, &request.choices, Some(&halves))?;
    let response = Response { offer, capsules: Some(capsules) };
    let bound = response.bound(domain, halves.first());
    Ok((pairs, response, bound))
}

impl Request {
    /// Sends all.
    ///
    /// # Errors
    /// [`Error::Transport`].
    pub(crate) fn send(&self, ch: &mut Channel) -> Result<()> {
        ch.send(&self.choices)?;
        self.keys.as_ref().map_or(Ok(()), |keys| ch.send(keys))
    }

    /// Receives all.
    ///
    /// # Errors
    /// [`Error::Peer`], [`Error::Transport`].
    pub(crate) fn receive(ch: &mut Channel, base: BaseOts) -> Result<Self> {
        let choices = ch.receive(&COUNT)?;
        let keys = (base == BaseOts::Hybrid).then(|| ch.receive(&COUNT)).transpose()?;
        Ok(Self { choices, keys })
    }
}

impl Response {
    /// Sends all.
    ///
    /// # Errors
    /// [`Error::Transport`].
    pub(crate) fn send(&self, ch: &mut Channel) -> Result<()> {
        ch.send(&self.offer)?;
        self.capsules.as_ref().map_or(Ok(()), |capsules| ch.send(capsules))
    }

    /// Receives all.
    ///
    /// # Errors
    /// [`Error::Peer`], [`Error::Transport`].
    pub(crate) fn receive(ch: &mut Channel, base: BaseOts) -> Result<Self> {
        let offer = ch.receive(&1)?;
        let capsules = (base == BaseOts::Hybrid).then(|| ch.receive(&COUNT)).transpose()?;
        Ok(Self { offer, capsules })
    }

    /// What with the request determines the keys: the point, or a digest of all messages.
    fn bound(&self, domain: &Domain, half: Option<&Half>) -> [u8; 32] {
        let point = self.offer.bytes();
        half.map_or(point, |half| domain.digest(b"base all", &[&point, &half.transcript]))
    }
}

/// What a [`Request`] costs when `from` sends it.
pub(crate) fn request_cost(from: Role, base: BaseOts) -> Cost {
    let choices = super::choices_cost(from);
    match base {
        BaseOts::Classical => choices,
        BaseOts::Hybrid => choices.then(lattice::keys_cost(from)),
    }
}

/// What a [`Response`] costs when `from` sends it.
pub(crate) fn response_cost(from: Role, base: BaseOts) -> Cost {
    let offer = super::offer_cost(from);
    match base {
        BaseOts::Classical => offer,
        BaseOts::Hybrid => offer.then(lattice::capsules_cost(from)),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::session::SessionId;
    use ring::Random;

    fn domain() -> Domain {
        Domain::new(SessionId([7; 32]), Role::Server)
    }

    fn bits() -> Vec<u8> {
        (0..COUNT).map(|i| (i % 5 < 2).into()).collect()
    }

    fn request(base: BaseOts) -> (Chooser, Request) {
        choose(&domain(), base, &mut Random::seeded(2), &bits())
    }

    #[test]
    fn both_kinds_give_the_chosen_keys_and_no_others() {
        let mut all = Vec::new();
        for base in [BaseOts::Classical, BaseOts::Hybrid] {
            let (chooser, request) = request(base);
            let (pairs, response, ours) =
                offer(&domain(), &mut Random::seeded(1), &request).unwrap();
            let (keys, theirs) = chooser.finish(&domain(), &response).unwrap();
            assert_eq!(ours, theirs);
            for ((pair, key), bit) in pairs.iter().zip(&keys).zip(bits()) {
                assert!(pair[usize::from(bit)] == *key && pair[usize::from(1 - bit)] != *key);
            }
            all.push((keys, ours));
        }
        assert!(all[0].1 != all[1].1);
        assert!(all[0].0.iter().zip(&all[1].0).all(|(one, other)| one != other));
    }

    /// Who knows all of one half and not the other has no key: each half changes every key.
    #[test]
    fn every_key_takes_both_halves() {
        let [(chooser, request), (again, _)] = [(); 2].map(|()| request(BaseOts::Hybrid));
        let (_, response, _) = offer(&domain(), &mut Random::seeded(1), &request).unwrap();
        let (_, other, _) = offer(&domain(), &mut Random::seeded(3), &request).unwrap();
        let (keys, _) = chooser.finish(&domain(), &response).unwrap();
        let Chooser { classical, lattice } = again;
        let (secrets, transcript) =
            lattice.unwrap().finish(&domain(), other.capsules.as_ref().unwrap()).unwrap();
        let half = Half { secrets, transcript };
        let mixed = classical.finish(&domain(), &response.offer, Some(&half)).unwrap();
        assert!(keys.iter().zip(&mixed).all(|(key, mixed)| key != mixed));
        let (_, request_again) = super::tests::request(BaseOts::Hybrid);
        let halves = [0, 1].map(|_| Half { secrets: half.secrets.clone(), transcript });
        let by_point = |seed| {
            let rng = &mut Random::seeded(seed);
            super::super::offer(&domain(), rng, &request_again.choices, Some(&halves)).unwrap().0
        };
        let (one, another) = (by_point(4), by_point(5));
        assert!(one.iter().zip(&another).all(|(a, b)| a[0] != b[0] && a[1] != b[1]));
    }

    /// Every capsule stands in the transcript, and the transcript in every key.
    #[test]
    fn a_changed_capsule_changes_every_key() {
        let (chooser, request) = request(BaseOts::Hybrid);
        let (pairs, mut response, ours) =
            offer(&domain(), &mut Random::seeded(1), &request).unwrap();
        response.capsules.as_mut().unwrap().spoil();
        let (keys, theirs) = chooser.finish(&domain(), &response).unwrap();
        assert!(ours != theirs);
        assert!(pairs.iter().zip(&keys).all(|(pair, key)| !pair.contains(key)));
    }

    #[test]
    fn kinds_do_not_mix() {
        for [ours, theirs] in
            [[BaseOts::Classical, BaseOts::Hybrid], [BaseOts::Hybrid, BaseOts::Classical]]
        {
            let (chooser, _) = request(ours);
            let (_, request) = request(theirs);
            let (_, response, _) = offer(&domain(), &mut Random::seeded(1), &request).unwrap();
            assert!(matches!(chooser.finish(&domain(), &response), Err(Error::Internal(_))));
        }
    }

    #[test]
    fn the_lattice_half_costs_436_kilobytes_a_direction_and_no_round() {
        let cost = |base| request_cost(Role::Server, base).then(response_cost(Role::Client, base));
        let (classical, hybrid) = (cost(BaseOts::Classical), cost(BaseOts::Hybrid));
        let more = |of: fn(Cost) -> u64| of(hybrid) - of(classical);
        assert_eq!(more(|cost| cost.server_to_client), 128 * 1232 + 5);
        assert_eq!(more(|cost| cost.client_to_server), 256 * 1088 + 5);
        assert_eq!(more(|cost| cost.rounds), 0);
    }
}
