use super::*;

fn request(session: u64, key: i64, mode: LockMode) -> Request {
    Request {
        session,
        target: LockTarget::Key(key),
        mode,
    }
}

fn exclusive(session: u64, key: i64) -> Request {
    request(session, key, LockMode::Exclusive)
}

fn shared(session: u64, key: i64) -> Request {
    request(session, key, LockMode::Share)
}

impl LockTable {
    /// Takes a lock, or waits for it; says which.
    fn ask(&mut self, request: Request) -> Result<bool> {
        let granted = self.grant(request)?;
        if !granted {
            self.enqueue(request)?;
        }
        Ok(granted)
    }

    fn holders(&self, key: i64) -> Vec<u64> {
        let lock = self.locks.get(&LockTarget::Key(key));
        let grants = lock.into_iter().flat_map(|lock| &lock.grants);
        let mut sessions: Vec<u64> = grants.map(|grant| grant.session).collect();
        sessions.sort_unstable();
        sessions
    }
}

#[test]
fn a_lock_is_had_as_often_as_it_was_taken() {
    let locks = Locks::default();
    for _ in 0..2 {
        assert!(locks.try_take(exclusive(1, 7)).expect("there is room"));
    }
    assert!(!locks.try_take(exclusive(2, 7)).expect("there is room"));
    locks.give_back(exclusive(1, 7));
    assert!(!locks.try_take(shared(2, 7)).expect("there is room"));
    locks.give_back(exclusive(1, 7));
    assert!(locks.try_take(exclusive(2, 7)).expect("there is room"));
    locks.give_back(exclusive(2, 7));
    assert!(lock(&locks.table).locks.is_empty());
    assert_eq!(lock(&locks.table).grants, 0);
}

#[test]
fn those_that_wait_are_served_in_their_order() {
    let mut table = LockTable::default();
    assert_eq!(table.ask(shared(1, 7)), Ok(true));
    assert_eq!(table.ask(exclusive(2, 7)), Ok(false));
    // It does not overtake the one that waits, as that would wait for ever behind a stream of
    // others.
    assert_eq!(table.ask(shared(3, 7)), Ok(false));
    assert_eq!(table.ask(shared(4, 7)), Ok(false));
    table.release(shared(1, 7));
    assert_eq!(table.holders(7), [2]);
    table.release(exclusive(2, 7));
    assert_eq!(table.holders(7), [3, 4]);
    assert!(table.waits.is_empty());
}

#[test]
fn a_holder_does_not_wait_for_those_that_wait_for_it() {
    let mut table = LockTable::default();
    assert_eq!(table.ask(shared(1, 7)), Ok(true));
    assert_eq!(table.ask(exclusive(2, 7)), Ok(false));
    assert_eq!(table.ask(exclusive(1, 7)), Ok(true));
    table.release(exclusive(1, 7));
    assert_eq!(table.holders(7), [1]);
    table.release(shared(1, 7));
    assert_eq!(table.holders(7), [2]);
}

#[test]
fn one_that_gives_up_lets_those_behind_it_pass() {
    let mut table = LockTable::default();
    assert_eq!(table.ask(shared(1, 7)), Ok(true));
    assert_eq!(table.ask(exclusive(2, 7)), Ok(false));
    assert_eq!(table.ask(shared(3, 7)), Ok(false));
    table.dequeue(exclusive(2, 7));
    assert_eq!(table.holders(7), [1, 3]);
}

#[test]
fn a_circle_of_waits_is_a_deadlock() {
    let mut table = LockTable::default();
    for session in 1..=3 {
        assert_eq!(
            table.ask(exclusive(session, session.cast_signed())),
            Ok(true)
        );
    }
    assert_eq!(table.ask(exclusive(1, 2)), Ok(false));
    assert_eq!(table.ask(exclusive(2, 3)), Ok(false));
    let error = table.ask(exclusive(3, 1)).expect_err("a circle");
    assert_eq!(error.state(), SqlState::DEADLOCK_DETECTED);
    let detail = error.detail().expect("it says who waits").to_owned();
    assert_eq!(detail.lines().count(), 3, "{detail}");
    assert!(
        detail.starts_with(
            "Process 3 waits for ExclusiveLock on advisory lock [1]; blocked by process 1."
        ),
        "{detail}"
    );
    // The one that was refused waits no more, and the others go on when it lets go.
    table.release(exclusive(3, 3));
    assert_eq!(table.holders(3), [2]);
}

#[test]
fn two_that_want_more_of_what_they_share_are_a_deadlock() {
    let mut table = LockTable::default();
    assert_eq!(table.ask(shared(1, 7)), Ok(true));
    assert_eq!(table.ask(shared(2, 7)), Ok(true));
    assert_eq!(table.ask(exclusive(1, 7)), Ok(false));
    let error = table.ask(exclusive(2, 7)).expect_err("a circle");
    assert_eq!(error.state(), SqlState::DEADLOCK_DETECTED);
    table.release(shared(2, 7));
    assert_eq!(table.holders(7), [1, 1]);
}

#[test]
fn a_holder_that_wants_more_waits_before_those_that_wait_for_it() {
    let mut table = LockTable::default();
    assert_eq!(table.ask(shared(1, 7)), Ok(true));
    assert_eq!(table.ask(shared(2, 7)), Ok(true));
    assert_eq!(table.ask(exclusive(3, 7)), Ok(false));
    assert_eq!(table.ask(exclusive(1, 7)), Ok(false));
    table.release(shared(2, 7));
    assert_eq!(table.holders(7), [1, 1]);
}

#[test]
fn a_wait_behind_another_wait_counts() {
    let mut table = LockTable::default();
    assert_eq!(table.ask(shared(1, 7)), Ok(true));
    assert_eq!(table.ask(exclusive(2, 8)), Ok(true));
    assert_eq!(table.ask(exclusive(2, 7)), Ok(false));
    // It would be granted but for the second session, which waits before it.
    assert_eq!(table.ask(exclusive(3, 9)), Ok(true));
    assert_eq!(table.ask(shared(3, 7)), Ok(false));
    assert_eq!(table.ask(exclusive(1, 10)), Ok(true));
    let error = table.ask(exclusive(1, 9)).expect_err("a circle");
    assert_eq!(error.state(), SqlState::DEADLOCK_DETECTED);
}

#[test]
fn waits_and_locks_are_bounded() {
    let mut table = LockTable::default();
    assert_eq!(table.ask(exclusive(1, 0)), Ok(true));
    let waiters = 2..2 + LOCK_WAITERS_MAX as u64;
    for session in waiters.clone() {
        assert_eq!(table.ask(exclusive(session, 0)), Ok(false));
    }
    let error = table.ask(exclusive(waiters.end, 0)).expect_err("no room");
    assert_eq!(error.state(), SqlState::TOO_MANY_CONNECTIONS);
    for key in 1..GRANTS_MAX as i64 {
        assert_eq!(table.grant(exclusive(1, key)), Ok(true));
    }
    let error = table.grant(exclusive(1, -1)).expect_err("no room");
    assert_eq!(error.state(), SqlState::OUT_OF_MEMORY);
}
