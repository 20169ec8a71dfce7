import type { z } from "zod";
import type { AuditAction, AuditEntity } from "../../data/accounts/audit-entry.ts";
import type { Queryable, Trx } from "../../data/database.ts";
import type { Row } from "../../data/tables.ts";
import type { Caller } from "../../http/context.ts";
import type { Shown } from "../../http/fields.ts";
import type { Listed, Page } from "../../http/page.ts";
import type { Versioned } from "../../http/version.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Fields } from "./field.ts";
import type { OwnedTable, Reference } from "./references.ts";
import type { QuerySchema, Route, RouteSpec } from "./route.ts";
import type { EnforceRowLimit } from "./row-limit.ts";
import type { EntityOf, InsideOf, RowOf, RowOfShape, Shape, ValuesOf } from "./shape.ts";

/** The dependencies of a resource that only keeps rows. */
export interface RowDeps {
  readonly db: Queryable;
  readonly clock: Clock;
  /** Refuses rows beyond what an organization may have. */
  readonly requireRoom: EnforceRowLimit;
}

/** The description of a resource: see `standardResource`. */
export interface ResourceSpec<
  F extends Fields,
  X extends z.ZodRawShape,
  D extends RowDeps,
  Q extends z.ZodRawShape,
> {
  readonly path: string;
  /** Its heading in the documentation. */
  readonly tag: string;
  /** Names operations and the path's parameter: `apiKey` → `createApiKey`, `:apiKeyId`. */
  readonly name: string;
  /** As it is written in a sentence; default: the name in words. */
  readonly words?: string;
  /** The table of these fields: see `TableOf`. */
  readonly table: TableWith<F>;
  readonly shape: Shape<F, X>;
  /** As what the audit keeps its changes; default: it keeps none. */
  readonly audit?: AuditEntity;
  /** The change feed is told of each write: by the row's id, or by the organization where it decides who may do what (`access`). */
  readonly feed?: "access" | "app" | "connection";
  /** The column that names its organization; default: `organizationId`. */
  readonly owner?: "id";
  /** New ones are dated by the database: those of several gateways stand in one order. */
  readonly datedBy?: "database";
  /** Fields that name rows, which must be there (404) when they are named anew, and stay until the write is done. */
  readonly references?: { readonly [K in keyof F]?: Reference };
  /** Its parent, which stands above it in the path. */
  readonly within?: Within;
  /** 409 where another row has what must be unique, be it changed or `new` alone. */
  readonly taken?: ConflictSpec & { readonly of?: "new" };
  /** 409 where other rows name the one that is deleted. */
  readonly inUse?: ConflictSpec;
  /** Those that a caller sees by their ids, where they are not all of its organization, or not its alone. */
  readonly visible?: (db: Queryable, caller: Caller) => Selection;
  /** 403 with that message for who changes one that is seen, but is another organization's; default: 404. */
  readonly foreign?: string;
  /** Those that a caller may come to change or delete, where they are not all of its organization; `prepare` and others refuse. */
  readonly changeable?: (db: Queryable, caller: Caller) => Selection;
  /** Its `ETag` is made of this; `If-Match` and `If-None-Match` are held against it. Its field `version` counts the writes. */
  readonly version?: (row: RowOf<F>) => Versioned;
  /** Filters of the list, and what they find; undefined: all of the organization. */
  readonly filters?: {
    readonly query: Q;
    /** Refuses filters by a throw. */
    readonly check?: (
      db: Queryable,
      caller: Caller,
      filters: z.output<z.ZodObject<Q>>,
      place: ParentIds,
    ) => Promise<void>;
    readonly find: (
      db: Queryable,
      caller: Caller,
      filters: z.output<z.ZodObject<Q>>,
      place: ParentIds,
    ) => Selection | undefined;
  };
  /** Reads at once what the answers for these rows hold beside their fields. */
  readonly inside?: (
    db: Queryable,
    rows: readonly RowOf<F>[],
    caller: Caller,
  ) => Promise<(row: RowOf<F>) => InsideOf<X>>;
  /** Answers one otherwise than a list does. @throws ApiError 404 */
  readonly answer?: (db: Queryable, caller: Caller, id: string) => Promise<Response>;
  /** Fields whose bodies are narrower than what stays valid where it stands. */
  readonly narrow?: (deps: D) => z.ZodRawShape;
  /** Like `prepare`, of the body alone and before the transaction, which would hold a connection of the pool: for slow checks. */
  readonly readBody?: (
    body: Partial<ValuesOf<F>>,
    deps: D,
    caller: Caller,
  ) => Promise<Partial<Shown<ValuesOf<F>>>>;
  /** The values of fields that are not stored as they are written, before a patch. */
  readonly readAside?: (trx: Trx, row: RowOf<F>) => Promise<Partial<ValuesOf<F>>>;
  /** Takes other locks before that of the row that is changed. */
  readonly lockFirst?: (trx: Trx, caller: Caller, patch: object) => Promise<void>;
  /** Refuses a write by a throw, or says which fields get another value than what was sent. */
  readonly prepare?: (write: Write<F, D>) => Promise<Partial<ValuesOf<F>>>;
  /** Writes what belongs to the row in other tables. */
  readonly afterWrite?: (write: Write<F, D> & { readonly row: RowOf<F> }) => Promise<void>;
  /** Refuses by a throw, or removes it in another way than to `remove` the row. */
  readonly remove?: (
    removal: Pick<Write<F, D>, "trx" | "caller" | "deps" | "nowMs"> & {
      readonly row: RowOf<F>;
      readonly remove: () => Promise<void>;
    },
  ) => Promise<void>;
  /** The body of a PUT repeats the id. */
  readonly identified?: true;
  /** Added to an operation's documentation. */
  readonly notes?: {
    readonly [O in Operation]?: O extends "create"
      ? /** A body that its fields do not tell. */ Notes & { readonly body?: z.ZodType<object> }
      : Notes;
  };
  /** Operations that it does not have, or that are among `more`. */
  readonly without?: readonly Operation[];
  readonly more?: (deps: D, kit: Kit<Shape<F, X>>) => readonly Route[];
}

export type Operation = "create" | "list" | "get" | "update" | "delete";
type Notes = Pick<
  RouteSpec<Record<never, never>, QuerySchema, z.ZodType, z.ZodType>,
  "description" | "missing" | "conflict" | "confined" | "allows"
>;

type TableWith<F extends Fields> = {
  [T in OwnedTable]: [RowOf<F>, Row<T>] extends [Row<T>, RowOf<F>] ? T : never;
}[OwnedTable];

/** A 409: when it is answered, for the documentation; and its message. */
export interface ConflictSpec {
  readonly when: string;
  readonly message: string;
}

/** The parent of a resource. */
export interface Within {
  /** The path's parameter, which is a field of the same name as well. */
  readonly param: string;
  readonly parent: Reference & { readonly table: OwnedTable };
  /** Who sees the parent, where that is not its organization alone. */
  readonly visible?: (db: Queryable, caller: Caller) => Selection;
  /** How the parent's row is locked before a write: default `create`, exclusively and for a new part alone. */
  readonly lock?: "create" | "createShared" | "always" | "alwaysShared";
}

/** A row that is about to be written. */
export interface Write<F extends Fields, D> {
  readonly trx: Trx;
  readonly caller: Caller;
  readonly deps: D;
  readonly nowMs: number;
  readonly id: string;
  /** Undefined: it is made. */
  readonly before: RowOf<F> | undefined;
  /** All of its values, those that were sent included. */
  readonly values: ValuesOf<F>;
}

/** The ids in the path above the resource, by their parameters. */
export type ParentIds = Readonly<Record<string, string>>;

/** Routes under `more` can build on it; `S` is the type of the shape. */
export interface Kit<
  S extends {
    readonly entity: z.ZodType;
    readonly types?: { readonly row: unknown; readonly values: unknown };
  },
> {
  /** The row as GET answers it. */
  readonly answer: (db: Queryable, caller: Caller, row: RowOfShape<S>) => Promise<EntityOf<S>>;
  readonly list: (
    caller: Caller,
    place: ParentIds,
    page: Page,
    filters: object,
  ) => Promise<Listed<EntityOf<S>>>;
  /** Writes a row as POST does, hidden fields too where they are among the values. */
  readonly insert: (
    trx: Trx,
    caller: Caller,
    place: ParentIds,
    values: PartialValues<S>,
  ) => Promise<RowOfShape<S>>;
  /** Locks the row, writes the fields that it is changed to, and answers it. @throws ApiError 404 */
  readonly change: (
    caller: Caller,
    id: string,
    to: (change: {
      readonly trx: Trx;
      readonly before: RowOfShape<S>;
      readonly nowMs: number;
    }) => PartialValues<S> | Promise<PartialValues<S>>,
    /** As which the audit keeps it; default: `update`. */
    action?: AuditAction,
  ) => Promise<EntityOf<S>>;
}
type PartialValues<S extends { readonly types?: { readonly values: unknown } }> = Partial<
  NonNullable<S["types"]>["values"]
>;

/** A query of a resource's table, by which rows are found: `db.selectFrom("stores").where(…)`. */
export interface Selection {
  readonly selectAll: () => unknown;
}
