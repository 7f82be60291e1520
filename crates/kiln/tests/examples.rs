//! The examples run and check themselves.

#[path = "../examples/bank_transfer.rs"]
mod bank_transfer;
#[path = "../examples/flash_sale.rs"]
mod flash_sale;

#[test]
fn money_is_transferred() {
    bank_transfer::main().expect("the bank works");
}

#[test]
fn the_sale_is_fair() {
    flash_sale::main().expect("the shop works");
}
