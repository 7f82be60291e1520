//! The error that everything above storage returns: a SQLSTATE, a message for people, and where
//! it happened. One pointer wide, so that a `Result` of a word stays in registers.

use std::fmt;

use crate::qualified::parts;

/// A result whose error is [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// A five-character SQLSTATE as PostgreSQL assigns them (appendix A of its manual).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SqlState([u8; 5]);

impl SqlState {
    /// The state with these five characters; `None` unless they are digits and upper-case letters.
    pub fn parse(text: &str) -> Option<SqlState> {
        let bytes: [u8; 5] = text.as_bytes().try_into().ok()?;
        bytes
            .iter()
            .all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
            .then_some(SqlState(bytes))
    }

    /// The five characters.
    pub fn as_str(&self) -> &str {
        // Every constructor admits ASCII only.
        std::str::from_utf8(&self.0).unwrap_or("XX000")
    }

    /// The two-character class, for instance `23` for violated constraints.
    pub fn class(&self) -> &str {
        &self.as_str()[..2]
    }

    /// Whether it stands for its whole class where a handler names it: it ends with `000`.
    pub fn is_category(&self) -> bool {
        self.0.ends_with(b"000")
    }

    /// PostgreSQL's name of the condition in lower case (`unique_violation`), as PL/pgSQL's
    /// `RAISE` and `EXCEPTION WHEN` spell it; `None` for a state without a name here.
    pub fn condition_name(&self) -> Option<&'static str> {
        let mut conditions = CONDITIONS.iter().chain(OTHER_CONDITIONS);
        let known = conditions.find(|(state, _)| state == self);
        known.map(|(_, name)| *name)
    }

    /// The state of a condition by its PostgreSQL name, in any letter case.
    pub fn from_condition_name(name: &str) -> Option<SqlState> {
        let mut conditions = CONDITIONS.iter().chain(OTHER_CONDITIONS);
        let known = conditions.find(|(_, known)| known.eq_ignore_ascii_case(name));
        known.map(|(state, _)| *state)
    }

    /// The states of errors with this condition name, in any letter case: several where PostgreSQL
    /// uses one name in two classes.
    pub fn errors_of_condition(name: &str) -> impl Iterator<Item = SqlState> {
        let conditions = CONDITIONS.iter().chain(OTHER_CONDITIONS).chain(SAME_NAMES);
        let is_error = |state: &SqlState| !matches!(state.class(), "00" | "01" | "02");
        let named = conditions.filter(move |(_, known)| known.eq_ignore_ascii_case(name));
        named.map(|(state, _)| *state).filter(is_error)
    }
}

impl fmt::Display for SqlState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for SqlState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SqlState({})", self.as_str())
    }
}

/// Declares the states as constants and the table from state to condition name.
macro_rules! conditions {
    ($($constant:ident = $code:literal, $name:literal;)*) => {
        impl SqlState {
            $(
                #[doc = concat!("PostgreSQL's condition `", $name, "`.")]
                pub const $constant: SqlState = SqlState(*$code);
            )*
        }

        const CONDITIONS: &[(SqlState, &str)] = &[$((SqlState::$constant, $name),)*];
    };
}

conditions! {
    SUCCESSFUL_COMPLETION = b"00000", "successful_completion";
    WARNING = b"01000", "warning";
    NO_DATA = b"02000", "no_data";
    CONNECTION_EXCEPTION = b"08000", "connection_exception";
    CONNECTION_FAILURE = b"08006", "connection_failure";
    PROTOCOL_VIOLATION = b"08P01", "protocol_violation";
    FEATURE_NOT_SUPPORTED = b"0A000", "feature_not_supported";
    INVALID_GRANT_OPERATION = b"0LP01", "invalid_grant_operation";
    CASE_NOT_FOUND = b"20000", "case_not_found";
    CARDINALITY_VIOLATION = b"21000", "cardinality_violation";
    DATA_EXCEPTION = b"22000", "data_exception";
    STRING_DATA_RIGHT_TRUNCATION = b"22001", "string_data_right_truncation";
    NUMERIC_VALUE_OUT_OF_RANGE = b"22003", "numeric_value_out_of_range";
    NULL_VALUE_NOT_ALLOWED = b"22004", "null_value_not_allowed";
    INVALID_DATETIME_FORMAT = b"22007", "invalid_datetime_format";
    DATETIME_FIELD_OVERFLOW = b"22008", "datetime_field_overflow";
    INVALID_TIME_ZONE_DISPLACEMENT_VALUE = b"22009", "invalid_time_zone_displacement_value";
    SUBSTRING_ERROR = b"22011", "substring_error";
    DIVISION_BY_ZERO = b"22012", "division_by_zero";
    INTERVAL_FIELD_OVERFLOW = b"22015", "interval_field_overflow";
    INVALID_PRECEDING_OR_FOLLOWING_SIZE = b"22013", "invalid_preceding_or_following_size";
    INVALID_ARGUMENT_FOR_NTILE_FUNCTION = b"22014", "invalid_argument_for_ntile_function";
    INVALID_ARGUMENT_FOR_NTH_VALUE_FUNCTION = b"22016", "invalid_argument_for_nth_value_function";
    INVALID_REGULAR_EXPRESSION = b"2201B", "invalid_regular_expression";
    INVALID_ARGUMENT_FOR_LOGARITHM = b"2201E", "invalid_argument_for_logarithm";
    INVALID_ARGUMENT_FOR_POWER_FUNCTION = b"2201F", "invalid_argument_for_power_function";
    INVALID_ARGUMENT_FOR_WIDTH_BUCKET_FUNCTION = b"2201G", "invalid_argument_for_width_bucket_function";
    INVALID_ROW_COUNT_IN_LIMIT_CLAUSE = b"2201W", "invalid_row_count_in_limit_clause";
    INVALID_ROW_COUNT_IN_RESULT_OFFSET_CLAUSE = b"2201X", "invalid_row_count_in_result_offset_clause";
    CHARACTER_NOT_IN_REPERTOIRE = b"22021", "character_not_in_repertoire";
    INVALID_PARAMETER_VALUE = b"22023", "invalid_parameter_value";
    SEQUENCE_GENERATOR_LIMIT_EXCEEDED = b"2200H", "sequence_generator_limit_exceeded";
    INVALID_ESCAPE_SEQUENCE = b"22025", "invalid_escape_sequence";
    ARRAY_SUBSCRIPT_ERROR = b"2202E", "array_subscript_error";
    INVALID_TEXT_REPRESENTATION = b"22P02", "invalid_text_representation";
    INVALID_BINARY_REPRESENTATION = b"22P03", "invalid_binary_representation";
    BAD_COPY_FILE_FORMAT = b"22P04", "bad_copy_file_format";
    UNTRANSLATABLE_CHARACTER = b"22P05", "untranslatable_character";
    INTEGRITY_CONSTRAINT_VIOLATION = b"23000", "integrity_constraint_violation";
    RESTRICT_VIOLATION = b"23001", "restrict_violation";
    NOT_NULL_VIOLATION = b"23502", "not_null_violation";
    FOREIGN_KEY_VIOLATION = b"23503", "foreign_key_violation";
    UNIQUE_VIOLATION = b"23505", "unique_violation";
    CHECK_VIOLATION = b"23514", "check_violation";
    INVALID_TRANSACTION_STATE = b"25000", "invalid_transaction_state";
    ACTIVE_SQL_TRANSACTION = b"25001", "active_sql_transaction";
    READ_ONLY_SQL_TRANSACTION = b"25006", "read_only_sql_transaction";
    NO_ACTIVE_SQL_TRANSACTION = b"25P01", "no_active_sql_transaction";
    IN_FAILED_SQL_TRANSACTION = b"25P02", "in_failed_sql_transaction";
    INVALID_SQL_STATEMENT_NAME = b"26000", "invalid_sql_statement_name";
    INVALID_AUTHORIZATION_SPECIFICATION = b"28000", "invalid_authorization_specification";
    INVALID_PASSWORD = b"28P01", "invalid_password";
    INVALID_TRANSACTION_TERMINATION = b"2D000", "invalid_transaction_termination";
    DEPENDENT_OBJECTS_STILL_EXIST = b"2BP01", "dependent_objects_still_exist";
    SQL_ROUTINE_EXCEPTION = b"2F000", "sql_routine_exception";
    FUNCTION_EXECUTED_NO_RETURN_STATEMENT = b"2F005", "function_executed_no_return_statement";
    INVALID_CURSOR_NAME = b"34000", "invalid_cursor_name";
    INVALID_SAVEPOINT_SPECIFICATION = b"3B001", "invalid_savepoint_specification";
    INVALID_CATALOG_NAME = b"3D000", "invalid_catalog_name";
    INVALID_SCHEMA_NAME = b"3F000", "invalid_schema_name";
    TRANSACTION_ROLLBACK = b"40000", "transaction_rollback";
    SERIALIZATION_FAILURE = b"40001", "serialization_failure";
    DEADLOCK_DETECTED = b"40P01", "deadlock_detected";
    SYNTAX_ERROR_OR_ACCESS_RULE_VIOLATION = b"42000", "syntax_error_or_access_rule_violation";
    SYNTAX_ERROR = b"42601", "syntax_error";
    INVALID_NAME = b"42602", "invalid_name";
    INVALID_COLUMN_DEFINITION = b"42611", "invalid_column_definition";
    NAME_TOO_LONG = b"42622", "name_too_long";
    DUPLICATE_COLUMN = b"42701", "duplicate_column";
    AMBIGUOUS_COLUMN = b"42702", "ambiguous_column";
    UNDEFINED_COLUMN = b"42703", "undefined_column";
    UNDEFINED_OBJECT = b"42704", "undefined_object";
    DUPLICATE_OBJECT = b"42710", "duplicate_object";
    DUPLICATE_ALIAS = b"42712", "duplicate_alias";
    DUPLICATE_FUNCTION = b"42723", "duplicate_function";
    AMBIGUOUS_FUNCTION = b"42725", "ambiguous_function";
    GROUPING_ERROR = b"42803", "grouping_error";
    DATATYPE_MISMATCH = b"42804", "datatype_mismatch";
    WRONG_OBJECT_TYPE = b"42809", "wrong_object_type";
    INVALID_FOREIGN_KEY = b"42830", "invalid_foreign_key";
    CANNOT_COERCE = b"42846", "cannot_coerce";
    GENERATED_ALWAYS = b"428C9", "generated_always";
    UNDEFINED_FUNCTION = b"42883", "undefined_function";
    INSUFFICIENT_PRIVILEGE = b"42501", "insufficient_privilege";
    RESERVED_NAME = b"42939", "reserved_name";
    UNDEFINED_TABLE = b"42P01", "undefined_table";
    UNDEFINED_PARAMETER = b"42P02", "undefined_parameter";
    DUPLICATE_CURSOR = b"42P03", "duplicate_cursor";
    DUPLICATE_PREPARED_STATEMENT = b"42P05", "duplicate_prepared_statement";
    DUPLICATE_SCHEMA = b"42P06", "duplicate_schema";
    DUPLICATE_TABLE = b"42P07", "duplicate_table";
    AMBIGUOUS_PARAMETER = b"42P08", "ambiguous_parameter";
    AMBIGUOUS_ALIAS = b"42P09", "ambiguous_alias";
    INVALID_CURSOR_DEFINITION = b"42P11", "invalid_cursor_definition";
    INVALID_COLUMN_REFERENCE = b"42P10", "invalid_column_reference";
    INVALID_FUNCTION_DEFINITION = b"42P13", "invalid_function_definition";
    INVALID_TABLE_DEFINITION = b"42P16", "invalid_table_definition";
    INVALID_OBJECT_DEFINITION = b"42P17", "invalid_object_definition";
    INDETERMINATE_DATATYPE = b"42P18", "indeterminate_datatype";
    INVALID_RECURSION = b"42P19", "invalid_recursion";
    WINDOWING_ERROR = b"42P20", "windowing_error";
    WITH_CHECK_OPTION_VIOLATION = b"44000", "with_check_option_violation";
    INSUFFICIENT_RESOURCES = b"53000", "insufficient_resources";
    DISK_FULL = b"53100", "disk_full";
    OUT_OF_MEMORY = b"53200", "out_of_memory";
    TOO_MANY_CONNECTIONS = b"53300", "too_many_connections";
    CONFIGURATION_LIMIT_EXCEEDED = b"53400", "configuration_limit_exceeded";
    PROGRAM_LIMIT_EXCEEDED = b"54000", "program_limit_exceeded";
    STATEMENT_TOO_COMPLEX = b"54001", "statement_too_complex";
    TOO_MANY_COLUMNS = b"54011", "too_many_columns";
    TOO_MANY_ARGUMENTS = b"54023", "too_many_arguments";
    OBJECT_NOT_IN_PREREQUISITE_STATE = b"55000", "object_not_in_prerequisite_state";
    OBJECT_IN_USE = b"55006", "object_in_use";
    LOCK_NOT_AVAILABLE = b"55P03", "lock_not_available";
    QUERY_CANCELED = b"57014", "query_canceled";
    ADMIN_SHUTDOWN = b"57P01", "admin_shutdown";
    IO_ERROR = b"58030", "io_error";
    UNDEFINED_FILE = b"58P01", "undefined_file";
    CONFIG_FILE_ERROR = b"F0000", "config_file_error";
    PLPGSQL_ERROR = b"P0000", "plpgsql_error";
    RAISE_EXCEPTION = b"P0001", "raise_exception";
    NO_DATA_FOUND = b"P0002", "no_data_found";
    TOO_MANY_ROWS = b"P0003", "too_many_rows";
    ASSERT_FAILURE = b"P0004", "assert_failure";
    INTERNAL_ERROR = b"XX000", "internal_error";
    DATA_CORRUPTED = b"XX001", "data_corrupted";
}

/// The states that only users raise and catch.
const OTHER_CONDITIONS: &[(SqlState, &str)] = &[
    (SqlState(*b"03000"), "sql_statement_not_yet_complete"),
    (SqlState(*b"08003"), "connection_does_not_exist"),
    (
        SqlState(*b"08001"),
        "sqlclient_unable_to_establish_sqlconnection",
    ),
    (
        SqlState(*b"08004"),
        "sqlserver_rejected_establishment_of_sqlconnection",
    ),
    (SqlState(*b"08007"), "transaction_resolution_unknown"),
    (SqlState(*b"09000"), "triggered_action_exception"),
    (SqlState(*b"0B000"), "invalid_transaction_initiation"),
    (SqlState(*b"0F000"), "locator_exception"),
    (SqlState(*b"0F001"), "invalid_locator_specification"),
    (SqlState(*b"0L000"), "invalid_grantor"),
    (SqlState(*b"0P000"), "invalid_role_specification"),
    (SqlState(*b"0Z000"), "diagnostics_exception"),
    (
        SqlState(*b"0Z002"),
        "stacked_diagnostics_accessed_without_active_handler",
    ),
    (SqlState(*b"22002"), "null_value_no_indicator_parameter"),
    (SqlState(*b"22005"), "error_in_assignment"),
    (SqlState(*b"2200B"), "escape_character_conflict"),
    (SqlState(*b"2200C"), "invalid_use_of_escape_character"),
    (SqlState(*b"2200D"), "invalid_escape_octet"),
    (SqlState(*b"2200F"), "zero_length_character_string"),
    (SqlState(*b"2200G"), "most_specific_type_mismatch"),
    (SqlState(*b"2200L"), "not_an_xml_document"),
    (SqlState(*b"2200M"), "invalid_xml_document"),
    (SqlState(*b"2200N"), "invalid_xml_content"),
    (SqlState(*b"2200S"), "invalid_xml_comment"),
    (SqlState(*b"2200T"), "invalid_xml_processing_instruction"),
    (SqlState(*b"22010"), "invalid_indicator_parameter_value"),
    (SqlState(*b"22018"), "invalid_character_value_for_cast"),
    (SqlState(*b"22019"), "invalid_escape_character"),
    (SqlState(*b"22022"), "indicator_overflow"),
    (SqlState(*b"22024"), "unterminated_c_string"),
    (SqlState(*b"22026"), "string_data_length_mismatch"),
    (SqlState(*b"22027"), "trim_error"),
    (SqlState(*b"2202G"), "invalid_tablesample_repeat"),
    (SqlState(*b"2202H"), "invalid_tablesample_argument"),
    (SqlState(*b"22030"), "duplicate_json_object_key_value"),
    (
        SqlState(*b"22031"),
        "invalid_argument_for_sql_json_datetime_function",
    ),
    (SqlState(*b"22032"), "invalid_json_text"),
    (SqlState(*b"22033"), "invalid_sql_json_subscript"),
    (SqlState(*b"22034"), "more_than_one_sql_json_item"),
    (SqlState(*b"22035"), "no_sql_json_item"),
    (SqlState(*b"22036"), "non_numeric_sql_json_item"),
    (SqlState(*b"22037"), "non_unique_keys_in_a_json_object"),
    (SqlState(*b"22038"), "singleton_sql_json_item_required"),
    (SqlState(*b"22039"), "sql_json_array_not_found"),
    (SqlState(*b"2203A"), "sql_json_member_not_found"),
    (SqlState(*b"2203B"), "sql_json_number_not_found"),
    (SqlState(*b"2203C"), "sql_json_object_not_found"),
    (SqlState(*b"2203D"), "too_many_json_array_elements"),
    (SqlState(*b"2203E"), "too_many_json_object_members"),
    (SqlState(*b"2203F"), "sql_json_scalar_required"),
    (
        SqlState(*b"2203G"),
        "sql_json_item_cannot_be_cast_to_target_type",
    ),
    (SqlState(*b"22P01"), "floating_point_exception"),
    (SqlState(*b"22P06"), "nonstandard_use_of_escape_character"),
    (SqlState(*b"23P01"), "exclusion_violation"),
    (SqlState(*b"24000"), "invalid_cursor_state"),
    (SqlState(*b"25002"), "branch_transaction_already_active"),
    (
        SqlState(*b"25003"),
        "inappropriate_access_mode_for_branch_transaction",
    ),
    (
        SqlState(*b"25004"),
        "inappropriate_isolation_level_for_branch_transaction",
    ),
    (
        SqlState(*b"25005"),
        "no_active_sql_transaction_for_branch_transaction",
    ),
    (
        SqlState(*b"25007"),
        "schema_and_data_statement_mixing_not_supported",
    ),
    (
        SqlState(*b"25008"),
        "held_cursor_requires_same_isolation_level",
    ),
    (SqlState(*b"25P03"), "idle_in_transaction_session_timeout"),
    (SqlState(*b"27000"), "triggered_data_change_violation"),
    (
        SqlState(*b"2B000"),
        "dependent_privilege_descriptors_still_exist",
    ),
    (SqlState(*b"2F002"), "modifying_sql_data_not_permitted"),
    (SqlState(*b"2F003"), "prohibited_sql_statement_attempted"),
    (SqlState(*b"2F004"), "reading_sql_data_not_permitted"),
    (SqlState(*b"38000"), "external_routine_exception"),
    (SqlState(*b"38001"), "containing_sql_not_permitted"),
    (SqlState(*b"39000"), "external_routine_invocation_exception"),
    (SqlState(*b"39001"), "invalid_sqlstate_returned"),
    (SqlState(*b"39P01"), "trigger_protocol_violated"),
    (SqlState(*b"39P02"), "srf_protocol_violated"),
    (SqlState(*b"39P03"), "event_trigger_protocol_violated"),
    (SqlState(*b"3B000"), "savepoint_exception"),
    (
        SqlState(*b"40002"),
        "transaction_integrity_constraint_violation",
    ),
    (SqlState(*b"40003"), "statement_completion_unknown"),
    (SqlState(*b"42P04"), "duplicate_database"),
    (SqlState(*b"42P12"), "invalid_database_definition"),
    (SqlState(*b"42P14"), "invalid_prepared_statement_definition"),
    (SqlState(*b"42P15"), "invalid_schema_definition"),
    (SqlState(*b"42P21"), "collation_mismatch"),
    (SqlState(*b"42P22"), "indeterminate_collation"),
    (SqlState(*b"55P02"), "cant_change_runtime_param"),
    (SqlState(*b"55P04"), "unsafe_new_enum_value_usage"),
    (SqlState(*b"57000"), "operator_intervention"),
    (SqlState(*b"57P02"), "crash_shutdown"),
    (SqlState(*b"57P03"), "cannot_connect_now"),
    (SqlState(*b"57P04"), "database_dropped"),
    (SqlState(*b"57P05"), "idle_session_timeout"),
    (SqlState(*b"58000"), "system_error"),
    (SqlState(*b"58P02"), "duplicate_file"),
    (SqlState(*b"72000"), "snapshot_too_old"),
    (SqlState(*b"F0001"), "lock_file_exists"),
    (SqlState(*b"HV000"), "fdw_error"),
    (SqlState(*b"HV001"), "fdw_out_of_memory"),
    (SqlState(*b"HV002"), "fdw_dynamic_parameter_value_needed"),
    (SqlState(*b"HV004"), "fdw_invalid_data_type"),
    (SqlState(*b"HV005"), "fdw_column_name_not_found"),
    (SqlState(*b"HV006"), "fdw_invalid_data_type_descriptors"),
    (SqlState(*b"HV007"), "fdw_invalid_column_name"),
    (SqlState(*b"HV008"), "fdw_invalid_column_number"),
    (SqlState(*b"HV009"), "fdw_invalid_use_of_null_pointer"),
    (SqlState(*b"HV00A"), "fdw_invalid_string_format"),
    (SqlState(*b"HV00B"), "fdw_invalid_handle"),
    (SqlState(*b"HV00C"), "fdw_invalid_option_index"),
    (SqlState(*b"HV00D"), "fdw_invalid_option_name"),
    (SqlState(*b"HV00J"), "fdw_option_name_not_found"),
    (SqlState(*b"HV00K"), "fdw_reply_handle"),
    (SqlState(*b"HV00L"), "fdw_unable_to_create_execution"),
    (SqlState(*b"HV00M"), "fdw_unable_to_create_reply"),
    (SqlState(*b"HV00N"), "fdw_unable_to_establish_connection"),
    (SqlState(*b"HV00P"), "fdw_no_schemas"),
    (SqlState(*b"HV00Q"), "fdw_schema_not_found"),
    (SqlState(*b"HV00R"), "fdw_table_not_found"),
    (SqlState(*b"HV010"), "fdw_function_sequence_error"),
    (SqlState(*b"HV014"), "fdw_too_many_handles"),
    (
        SqlState(*b"HV021"),
        "fdw_inconsistent_descriptor_information",
    ),
    (SqlState(*b"HV024"), "fdw_invalid_attribute_value"),
    (
        SqlState(*b"HV090"),
        "fdw_invalid_string_length_or_buffer_length",
    ),
    (
        SqlState(*b"HV091"),
        "fdw_invalid_descriptor_field_identifier",
    ),
    (SqlState(*b"XX002"), "index_corrupted"),
];

/// States whose names are those of others.
const SAME_NAMES: &[(SqlState, &str)] = &[
    (SqlState(*b"38002"), "modifying_sql_data_not_permitted"),
    (SqlState(*b"38003"), "prohibited_sql_statement_attempted"),
    (SqlState(*b"38004"), "reading_sql_data_not_permitted"),
    (SqlState(*b"39004"), "null_value_not_allowed"),
];

/// A place in source text. Lines and columns count from 1; columns count characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Position {
    /// The line.
    pub line: u32,
    /// The column within the line.
    pub column: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Body {
    state: SqlState,
    message: String,
    detail: Option<String>,
    hint: Option<String>,
    subject: Subject,
    context: Option<String>,
    position: Option<Position>,
}

/// The objects that an error is about, by name, for programs: PostgreSQL's fields `s`, `t`, `c`,
/// `d` and `n`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subject {
    /// The schema of the table or type.
    pub schema: Option<String>,
    /// The table.
    pub table: Option<String>,
    /// The column of the table.
    pub column: Option<String>,
    /// The type.
    pub data_type: Option<String>,
    /// The violated constraint.
    pub constraint: Option<String>,
}

impl Subject {
    /// A table, by the name that a catalog has for it.
    pub fn table(name: &str) -> Subject {
        let (schema, table) = parts(name);
        Subject {
            schema: Some(schema.to_owned()),
            table: Some(table.to_owned()),
            ..Subject::default()
        }
    }

    /// A column of the table.
    #[must_use]
    pub fn with_column(mut self, name: &str) -> Subject {
        self.column = Some(name.to_owned());
        self
    }

    /// A constraint of the table.
    #[must_use]
    pub fn with_constraint(mut self, name: &str) -> Subject {
        self.constraint = Some(name.to_owned());
        self
    }
}

/// What went wrong: a [`SqlState`] for programs, a message for people, and optionally a detail, a
/// hint at what to do, the objects that it is about and the place in the source text.
///
/// ```
/// use kiln_storage::error::{Error, SqlState};
/// let error = Error::new(SqlState::DIVISION_BY_ZERO, "division by zero").at(3, 14);
/// assert_eq!(error.to_string(), "division by zero (SQLSTATE 22012) at line 3, column 14");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Error(Box<Body>);

impl Error {
    /// An error of `state` that says `message`; the other fields start empty.
    #[cold]
    pub fn new(state: SqlState, message: impl Into<String>) -> Error {
        Error(Box::new(Body {
            state,
            message: message.into(),
            detail: None,
            hint: None,
            subject: Subject::default(),
            context: None,
            position: None,
        }))
    }

    /// `division by zero`, 22012.
    #[cold]
    pub fn division_by_zero() -> Error {
        Error::new(SqlState::DIVISION_BY_ZERO, "division by zero")
    }

    /// `<type name> out of range`, 22003.
    #[cold]
    pub fn out_of_range(type_name: &str) -> Error {
        Error::new(
            SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
            format!("{type_name} out of range"),
        )
    }

    /// `invalid input syntax for type <type name>: "<input>"`, 22P02.
    #[cold]
    pub fn invalid_input(type_name: &str, input: &str) -> Error {
        Error::new(
            SqlState::INVALID_TEXT_REPRESENTATION,
            format!("invalid input syntax for type {type_name}: \"{input}\""),
        )
    }

    /// An error of state 0A000 that names a feature which is not supported.
    #[cold]
    pub fn unsupported(message: impl Into<String>) -> Error {
        Error::new(SqlState::FEATURE_NOT_SUPPORTED, message)
    }

    /// A broken invariant that could be reported instead of panicking, XX000.
    #[cold]
    pub fn internal(message: impl Into<String>) -> Error {
        Error::new(SqlState::INTERNAL_ERROR, message)
    }

    /// Adds the detail: the facts of this occurrence, a whole sentence.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Error {
        self.0.detail = Some(detail.into());
        self
    }

    /// Adds the hint: what the user can do about it.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Error {
        self.0.hint = Some(hint.into());
        self
    }

    /// Sets the objects that it is about.
    #[must_use]
    pub fn about(mut self, subject: Subject) -> Error {
        self.0.subject = subject;
        self
    }

    /// Adds what was done when it happened, where that is not in the source text.
    #[must_use]
    pub fn with_context(mut self, context: impl Into<String>) -> Error {
        self.0.context = Some(context.into());
        self
    }

    /// Sets where in the source text it happened, both counted from 1.
    #[must_use]
    pub fn at(mut self, line: u32, column: u32) -> Error {
        self.0.position = Some(Position { line, column });
        self
    }

    /// Sets the place only where none is set: the innermost place is the most exact one.
    #[must_use]
    pub fn or_at(mut self, position: Position) -> Error {
        self.0.position.get_or_insert(position);
        self
    }

    /// Takes the place away: it is of a text that the user has not written.
    #[must_use]
    pub fn without_position(mut self) -> Error {
        self.0.position = None;
        self
    }

    /// The SQLSTATE.
    pub fn state(&self) -> SqlState {
        self.0.state
    }

    /// The message, one line without a final full stop.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The detail, if any.
    pub fn detail(&self) -> Option<&str> {
        self.0.detail.as_deref()
    }

    /// The hint, if any.
    pub fn hint(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    /// The violated constraint's name, if one was violated.
    pub fn constraint(&self) -> Option<&str> {
        self.0.subject.constraint.as_deref()
    }

    /// The objects that it is about.
    pub fn subject(&self) -> &Subject {
        &self.0.subject
    }

    /// What was done when it happened, if that is known.
    pub fn context(&self) -> Option<&str> {
        self.0.context.as_deref()
    }

    /// The place in the source text, if known.
    pub fn position(&self) -> Option<Position> {
        self.0.position
    }
}

impl fmt::Display for Error {
    /// One line: message, state and place. The alternate form (`{:#}`) adds detail and hint,
    /// each on a line of its own.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let body = &*self.0;
        write!(f, "{} (SQLSTATE {})", body.message, body.state)?;
        if let Some(Position { line, column }) = body.position {
            write!(f, " at line {line}, column {column}")?;
        }
        if f.alternate() {
            if let Some(detail) = &body.detail {
                write!(f, "\nDETAIL:  {detail}")?;
            }
            if let Some(hint) = &body.hint {
                write!(f, "\nHINT:  {hint}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let body = &*self.0;
        f.debug_struct("Error")
            .field("state", &body.state)
            .field("message", &body.message)
            .field("detail", &body.detail)
            .field("hint", &body.hint)
            .field("subject", &body.subject)
            .field("position", &body.position)
            .finish()
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_one_pointer() {
        assert_eq!(size_of::<Error>(), size_of::<usize>());
        assert_eq!(size_of::<Result<()>>(), size_of::<usize>());
    }

    #[test]
    fn states_have_unique_codes_and_names() {
        let conditions: Vec<_> = CONDITIONS.iter().chain(OTHER_CONDITIONS).collect();
        for (index, (state, name)) in conditions.iter().enumerate() {
            assert_eq!(SqlState::parse(state.as_str()), Some(*state));
            assert_eq!(
                SqlState::from_condition_name(&name.to_uppercase()),
                Some(*state)
            );
            for (other_state, other_name) in &conditions[index + 1..] {
                assert_ne!(state, other_state);
                assert_ne!(name, other_name);
            }
        }
        assert_eq!(SqlState::parse("2350x"), None);
        assert_eq!(SqlState::parse("235055"), None);
        assert_eq!(
            SqlState::UNIQUE_VIOLATION.condition_name(),
            Some("unique_violation")
        );
        assert_eq!(SqlState::UNIQUE_VIOLATION.class(), "23");
    }

    #[test]
    fn the_alternate_form_adds_detail_and_hint() {
        let error = Error::new(SqlState::UNIQUE_VIOLATION, "duplicate key")
            .with_detail("Key (id)=(1) already exists.")
            .with_hint("Use another key.")
            .about(Subject::table("t").with_constraint("t_pkey"))
            .at(2, 7)
            .or_at(Position { line: 9, column: 9 });
        assert_eq!(
            format!("{error}"),
            "duplicate key (SQLSTATE 23505) at line 2, column 7"
        );
        assert_eq!(
            format!("{error:#}"),
            "duplicate key (SQLSTATE 23505) at line 2, column 7\n\
             DETAIL:  Key (id)=(1) already exists.\nHINT:  Use another key."
        );
        assert_eq!(error.constraint(), Some("t_pkey"));
        assert_eq!(error.subject().table.as_deref(), Some("t"));
    }
}
