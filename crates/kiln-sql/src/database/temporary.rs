//! Temporary tables, sequences and views: which statements are of them, and how a session defines
//! them.
//!
//! The catalog in force knows nothing of them (`kiln-engine/src/change/temporary.rs`). A statement
//! that defines is of temporary objects if it says so, or if a relation that it names is one, along
//! the path of the session. All others are made along that path without the temporary schema: what
//! they leave in the catalog means the same to every session.

use kiln_engine::{CatalogChange, SearchPath, Source};
use kiln_platform::sync::Arc;
use kiln_storage::error::{Error, Result, SqlState};
use sqlparser::ast::ObjectName;

use super::definition::DefinitionOfBlock;
use super::ownership::{references_added, references_of};
use super::result::{Notice, StatementResult};
use super::session::Session;
use crate::catalog::{View, relation_of};
use crate::compile::{
    TEMPORARY_SCHEMA, ddl, fail, position_of, row_name, schema_written, unsupported,
};
use crate::parse::{AlteredObject, CommentedObject, CreateView, GrantObjects, Statement as Tree};

impl Session {
    /// Whether a statement that defines is of temporary objects of the session.
    ///
    /// # Errors
    /// 0A000 for one of temporary and permanent relations, and for privileges of temporary ones;
    /// 42P16 for a permanent table that is to refer to a temporary one.
    pub(super) fn is_of_temporary(&self, tree: &Tree) -> Result<bool> {
        let names_own = |name: &ObjectName| -> Result<bool> {
            let schema = schema_written(name)?;
            Ok(schema.is_some_and(|it| it == TEMPORARY_SCHEMA || it == self.session.own_schema()))
        };
        let is_new = match tree {
            Tree::CreateTable(it) => it.table.temporary || names_own(&it.table.name)?,
            Tree::CreateTableAs(it) => it.is_temporary || names_own(&it.name)?,
            Tree::CreateSequence(it) => it.is_temporary || names_own(&it.name)?,
            Tree::CreateView(it) => {
                it.is_temporary || names_own(&it.name)? || self.reads_temporary(it)
            }
            _ => false,
        };
        if is_new || !self.has_temporary() {
            return Ok(is_new);
        }
        if let Tree::CreateTable(it) = tree {
            self.refuse_reference(&references_of(it))?;
        }
        if let Tree::AlterTable(it) = tree
            && !self.is_temporary(&it.name)
        {
            let added = it.actions.iter().flat_map(references_added);
            self.refuse_reference(&added.collect::<Vec<_>>())?;
        }
        let names = relations_of(tree);
        let Some(own) = names.iter().find(|name| self.is_temporary(name)) else {
            return Ok(false);
        };
        if let Tree::Grant(_) = tree {
            let what = "a privilege for a temporary relation";
            return Err(unsupported(what, position_of(own)));
        }
        let catalog = self.seen();
        let is_permanent = |name: &&ObjectName| {
            let known = relation_of(&catalog, name);
            known.is_ok_and(|known| !catalog.is_temporary(&known) && catalog.is_relation(&known))
        };
        match names.iter().find(is_permanent) {
            None => Ok(true),
            Some(name) => {
                let what = "a statement of temporary and permanent relations";
                Err(unsupported(what, position_of(name)))
            }
        }
    }

    /// Whether the session has temporary objects.
    pub(super) fn has_temporary(&self) -> bool {
        self.temporary.is_some() && self.session.temporary_schema().is_some()
    }

    fn is_temporary(&self, name: &ObjectName) -> bool {
        let catalog = self.seen();
        relation_of(&catalog, name).is_ok_and(|name| catalog.is_temporary(&name))
    }

    /// Whether a view reads from temporary relations, so that it can only be temporary.
    fn reads_temporary(&self, view: &CreateView) -> bool {
        if !self.has_temporary() {
            return false;
        }
        let catalog = self.seen();
        let made = ddl::create_view(view, &View::of(&catalog));
        made.is_ok_and(|made| {
            let mut reads = made.reads.iter();
            reads.any(|read| catalog.is_temporary(&read.relation))
        })
    }

    fn refuse_reference(&self, referenced: &[&ObjectName]) -> Result<()> {
        match referenced.iter().find(|name| self.is_temporary(name)) {
            None => Ok(()),
            Some(_) => {
                let message = "constraints on permanent tables may reference only permanent tables";
                Err(fail(SqlState::INVALID_TABLE_DEFINITION, message, None))
            }
        }
    }

    /// The path along which a permanent definition looks for names.
    pub(super) fn permanent_path(&self, path: SearchPath) -> SearchPath {
        match &self.temporary {
            None => path,
            Some(_) => path.without(&self.session.own_schema()),
        }
    }

    /// Makes the change of a statement of temporary objects, in the open block or in one of its
    /// own.
    pub(super) fn define_temporary(
        &mut self,
        tree: &Tree,
        source: Source,
    ) -> Result<StatementResult> {
        let mut tree = tree.clone();
        let mut notice = None;
        if let Tree::CreateView(view) = &mut tree {
            if !view.is_temporary && schema_written(&view.name)?.is_none() {
                let name = row_name(&view.name)?;
                let message = format!("view \"{name}\" will be a temporary view");
                notice = Some(Notice::new(message));
            }
            view.is_temporary = true;
        }
        if let Tree::CreateTable(it) = &mut tree {
            it.table.temporary = true;
        }
        self.refuse_pending(&tree)?;
        let path = source.path.behind(&self.session.own_schema());
        let (tree, source) = (Arc::new(tree), Source { path, ..source });
        let defined = DefinitionOfBlock::new(
            tree,
            source,
            (self.acting_role(), self.settings.has_style()),
        );
        let defined = Arc::new(defined);
        self.make_temporary(defined.clone())?;
        let mut result = defined.take_result();
        result.notices.extend(notice);
        Ok(result)
    }

    fn make_temporary(&mut self, definition: Arc<dyn kiln_engine::Definition>) -> Result<()> {
        let shared = &self.statements;
        let own = self.temporary.get_or_insert_with(|| shared.of_session());
        // What was compiled may hold tables that go.
        own.clear();
        self.in_one_transaction(|session| session.session.define_temporary(&definition))
    }

    /// DISCARD TEMP.
    pub(super) fn drop_temporary(&mut self) -> Result<()> {
        if !self.has_temporary() {
            return Ok(());
        }
        self.make_temporary(Arc::new(DropAll(Arc::new(Source {
            text: "DISCARD TEMP".to_owned(),
            line: 1,
            column: 1,
            path: SearchPath::default(),
        }))))
    }
}

/// Removes all temporary objects.
struct DropAll(Arc<Source>);

impl kiln_engine::Definition for DropAll {
    fn source(&self) -> &Arc<Source> {
        &self.0
    }

    fn define(&self, change: &mut CatalogChange<'_>) -> Result<()> {
        match change.is_temporary() {
            true => {
                change.drop_temporary();
                Ok(())
            }
            false => Err(Error::internal(
                "only a session's own objects are discarded",
            )),
        }
    }
}

/// The relations that a statement changes.
fn relations_of(tree: &Tree) -> Vec<ObjectName> {
    match tree {
        Tree::CreateIndex(it) => vec![it.table_name.clone()],
        Tree::AlterTable(it) => vec![it.name.clone()],
        Tree::AlterSequence(it) => vec![it.name.clone()],
        Tree::AlterObject(it) => match &it.object {
            AlteredObject::Index(name)
            | AlteredObject::Sequence(name)
            | AlteredObject::MaterializedView(name) => vec![name.clone()],
            AlteredObject::Routine(..) => Vec::new(),
        },
        Tree::AlterView(it) => vec![it.name.clone()],
        Tree::CreateTrigger(it) => vec![it.table.clone()],
        Tree::DropTrigger(it) => vec![it.table.clone()],
        Tree::RenameTrigger(it) => vec![it.table.clone()],
        Tree::Drop(it) => it.names.clone(),
        Tree::Truncate(it) => it.table_names.iter().map(|it| it.name.clone()).collect(),
        Tree::Analyze(names) => names.clone(),
        Tree::Comment(it) => match &it.object {
            CommentedObject::Relation(_, name) | CommentedObject::Constraint(_, name) => {
                vec![name.clone()]
            }
            CommentedObject::Column(name) => {
                let of = name.0.split_last().map_or(&[][..], |(_, of)| of);
                vec![ObjectName(of.to_vec())]
            }
            _ => Vec::new(),
        },
        Tree::Grant(it) => match &it.objects {
            GrantObjects::Tables(names) | GrantObjects::Sequences(names) => names.clone(),
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}
