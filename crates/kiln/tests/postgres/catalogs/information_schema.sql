-- The standard's relations.
SELECT table_name, table_type, is_insertable_into, is_typed, commit_action FROM information_schema.tables WHERE table_schema = current_schema() ORDER BY table_name;
SELECT table_name, column_name, ordinal_position, column_default, is_nullable, data_type, character_maximum_length, character_octet_length, numeric_precision, numeric_precision_radix, numeric_scale, datetime_precision, udt_schema, udt_name, dtd_identifier, is_self_referencing, is_identity, is_generated, is_updatable, collation_name FROM information_schema.columns WHERE table_schema = current_schema() ORDER BY table_name, ordinal_position;
SELECT table_name, constraint_name, constraint_type, is_deferrable, initially_deferred, enforced, nulls_distinct FROM information_schema.table_constraints WHERE table_schema = current_schema() AND constraint_name NOT LIKE '%not_null' ORDER BY 1, 2;
SELECT table_name, constraint_type, count(*) FROM information_schema.table_constraints WHERE table_schema = current_schema() GROUP BY 1, 2 ORDER BY 1, 2;
SELECT table_name, constraint_name, column_name, ordinal_position, position_in_unique_constraint FROM information_schema.key_column_usage WHERE table_schema = current_schema() ORDER BY 1, 2, 4;
SELECT table_name, column_name, constraint_name FROM information_schema.constraint_column_usage WHERE table_schema = current_schema() ORDER BY 1, 3, 2;
SELECT table_name, constraint_name FROM information_schema.constraint_table_usage WHERE table_schema = current_schema() ORDER BY 1, 2;
SELECT constraint_name, unique_constraint_name, match_option, update_rule, delete_rule FROM information_schema.referential_constraints WHERE constraint_schema = current_schema() ORDER BY 1;
SELECT constraint_name, check_clause FROM information_schema.check_constraints WHERE constraint_schema = current_schema() AND constraint_name NOT LIKE '%not_null' ORDER BY 1;
SELECT check_clause, count(*) FROM information_schema.check_constraints WHERE constraint_schema = current_schema() GROUP BY 1 ORDER BY 1;
SELECT routine_name, routine_type, data_type, type_udt_name, routine_body, external_language, parameter_style, is_deterministic, sql_data_access, is_null_call, schema_level_routine, max_dynamic_result_sets, security_type, as_locator, is_udt_dependent, dtd_identifier FROM information_schema.routines WHERE routine_schema = current_schema() ORDER BY 1;
SELECT r.routine_name, p.ordinal_position, p.parameter_mode, p.is_result, p.as_locator, p.parameter_name, p.data_type, p.udt_name, p.dtd_identifier, p.parameter_default FROM information_schema.parameters p JOIN information_schema.routines r ON r.specific_name = p.specific_name WHERE p.specific_schema = current_schema() ORDER BY 1, 2;
SELECT grantor, grantee, table_name, privilege_type, is_grantable, with_hierarchy FROM information_schema.table_privileges WHERE table_schema = current_schema() ORDER BY 3, 2, 4;
SELECT grantor, grantee, routine_name, privilege_type, is_grantable FROM information_schema.routine_privileges WHERE routine_schema = current_schema() ORDER BY 3, 2;
SELECT schema_name, schema_owner, sql_path FROM information_schema.schemata WHERE schema_name IN ('pg_catalog', 'information_schema') ORDER BY 1;
SELECT count(*) FROM information_schema.views WHERE table_schema = current_schema();
SELECT count(*) FROM information_schema.sequences WHERE sequence_schema = current_schema();
