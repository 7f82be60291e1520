//! The examples run and check themselves.

#[path = "../../examples/bank_transfer.rs"]
mod bank_transfer;
#[path = "../../examples/flash_sale.rs"]
mod flash_sale;
#[path = "../../examples/reopened_shop.rs"]
mod reopened_shop;

#[test]
fn money_is_transferred() {
    bank_transfer::main().expect("the bank works");
}

#[test]
fn the_sale_is_fair() {
    flash_sale::main().expect("the shop works");
}

#[test]
fn the_shop_opens_again() {
    reopened_shop::main().expect("the shop works");
}
