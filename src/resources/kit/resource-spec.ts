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

export interface RowDeps {
  readonly db: Queryable;
  readonly clock: Clock;
  readonly requireRoom: EnforceRowLimit;
}

export interface ResourceSpec<
  F extends Fields,
  X extends z.ZodRawShape,
  D extends RowDeps,
  Q extends z.ZodRawShape,
> {
  readonly path: string;
  readonly tag: string;
  /** Name from which operations and the path parameter are derived: `apiKey` → `createApiKey`, `:apiKeyId`. */
  readonly name: string;
  /** Singular noun for messages and documentation. Default: the name split into words. */
  readonly words?: string;
  readonly table: TableWith<F>;
  readonly shape: Shape<F, X>;
  /** Entity type of the audit entries. If omitted, writes are not recorded in the audit log. */
  readonly audit?: AuditEntity;
  /** Kind of the change feed entry that each write adds. Its key is the row's id, or the organization's id for `access`. */
  readonly feed?: "access" | "app" | "connection";
  /** Column with the organization's id. `id` is for the organizations themselves. Default: `organizationId`. */
  readonly owner?: "id";
  /** Takes creation times from the database clock, so that rows created by several gateways have one consistent order. */
  readonly datedBy?: "database";
  /** Fields that refer to other rows. A newly referenced row must exist (404), and cannot be deleted during the write. */
  readonly references?: { readonly [K in keyof F]?: Reference };
  /** Parent resource, whose id is part of the path. */
  readonly within?: Within;
  /** 409 response when a unique value is already taken. With `of: "new"`, only POST documents it, because the value never changes. */
  readonly taken?: ConflictSpec & { readonly of?: "new" };
  /** 409 when other rows still refer to the row to be deleted. */
  readonly inUse?: ConflictSpec;
  /** Selects the rows that a caller can read by id. Default: all rows of the caller's organization. */
  readonly visible?: (db: Queryable, caller: Caller) => Selection;
  /** Message of the 403 for changing a visible row of another organization. By default, the response is 404. */
  readonly foreign?: string;
  /** Selects the rows that a caller may try to change or delete. Default: the visible rows of the caller's organization. */
  readonly changeable?: (db: Queryable, caller: Caller) => Selection;
  /** Returns the row's version for `ETag`, `If-Match` and `If-None-Match`. Requires a field `version`, which counts writes. */
  readonly version?: (row: RowOf<F>) => Versioned;
  /** Query parameters of the list, and the query that applies them. By default, the list has all rows of the organization. */
  readonly filters?: {
    readonly query: Q;
    /** Throws to reject invalid filters. */
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
  /** Loads the nested parts of the responses for several rows at once. The returned function gives the parts of one row. */
  readonly inside?: (
    db: Queryable,
    rows: readonly RowOf<F>[],
    caller: Caller,
  ) => Promise<(row: RowOf<F>) => InsideOf<X>>;
  /** Builds the response for a single row when it differs from a list item. @throws ApiError 404 */
  readonly answer?: (db: Queryable, caller: Caller, id: string) => Promise<Response>;
  /** Replaces request schemas with stricter ones, when some stored values are no longer valid in new writes. */
  readonly narrow?: (deps: D) => z.ZodRawShape;
  /** Like `prepare`, but runs before the transaction and receives only the body. For slow checks, which would occupy a connection. */
  readonly readBody?: (
    body: Partial<ValuesOf<F>>,
    deps: D,
    caller: Caller,
  ) => Promise<Partial<Shown<ValuesOf<F>>>>;
  /** Reads the current values of fields without a column, before a patch is applied. */
  readonly readAside?: (trx: Trx, row: RowOf<F>) => Promise<Partial<ValuesOf<F>>>;
  /** Called before the row to change is locked, to take locks on other rows first. */
  readonly lockFirst?: (trx: Trx, caller: Caller, patch: object) => Promise<void>;
  /** Called before a row is written. Throws to reject the write, or returns values that replace the sent ones. */
  readonly prepare?: (write: Write<F, D>) => Promise<Partial<ValuesOf<F>>>;
  /** Called after the row is written, to write related rows of other tables in the same transaction. */
  readonly afterWrite?: (write: Write<F, D> & { readonly row: RowOf<F> }) => Promise<void>;
  /** Called to delete a row. Throws to reject the deletion, or calls `remove` to delete the row. */
  readonly remove?: (
    removal: Pick<Write<F, D>, "trx" | "caller" | "deps" | "nowMs"> & {
      readonly row: RowOf<F>;
      readonly remove: () => Promise<void>;
    },
  ) => Promise<void>;
  /** Set when the body of a PUT must repeat the id. */
  readonly identified?: true;
  /** Additional OpenAPI documentation per operation. */
  readonly notes?: {
    readonly [O in Operation]?: O extends "create"
      ? /** `body` overrides the schema derived from the fields. */ Notes & {
          readonly body?: z.ZodType<object>;
        }
      : Notes;
  };
  /** Standard operations to leave out, for example because `more` replaces them. */
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

/** A 409 response: its condition in the API reference, and the message sent to the client. */
export interface ConflictSpec {
  readonly when: string;
  readonly message: string;
}

export interface Within {
  /** Name of the path parameter and of the field that refers to the parent. */
  readonly param: string;
  readonly parent: Reference & { readonly table: OwnedTable };
  /** Selects the parents that a caller can see. Default: those of its organization. */
  readonly visible?: (db: Queryable, caller: Caller) => Selection;
  /** How a write locks the parent's row. The default `create` locks it exclusively, and only when a row is created. */
  readonly lock?: "create" | "createShared" | "always" | "alwaysShared";
}

export interface Write<F extends Fields, D> {
  readonly trx: Trx;
  readonly caller: Caller;
  readonly deps: D;
  readonly nowMs: number;
  readonly id: string;
  /** The row before the change. `undefined` on creation. */
  readonly before: RowOf<F> | undefined;
  /** The values of all fields, after the request body is applied. */
  readonly values: ValuesOf<F>;
}

/** Ids of the parent resources in the path, by parameter name. */
export type ParentIds = Readonly<Record<string, string>>;

/** Standard operations that the routes in `more` can use. `S` is the type of the shape. */
export interface Kit<
  S extends {
    readonly entity: z.ZodType;
    readonly types?: { readonly row: unknown; readonly values: unknown };
  },
> {
  /** Renders a row like the response of GET. */
  readonly answer: (db: Queryable, caller: Caller, row: RowOfShape<S>) => Promise<EntityOf<S>>;
  readonly list: (
    caller: Caller,
    place: ParentIds,
    page: Page,
    filters: object,
  ) => Promise<Listed<EntityOf<S>>>;
  /** Inserts a row as POST does. `values` may also contain hidden fields. */
  readonly insert: (
    trx: Trx,
    caller: Caller,
    place: ParentIds,
    values: PartialValues<S>,
  ) => Promise<RowOfShape<S>>;
  /** Locks the row, writes the fields that `to` returns, and renders the result. @throws ApiError 404 */
  readonly change: (
    caller: Caller,
    id: string,
    to: (change: {
      readonly trx: Trx;
      readonly before: RowOfShape<S>;
      readonly nowMs: number;
    }) => PartialValues<S> | Promise<PartialValues<S>>,
    /** Action of the audit entry. Default: `update`. */
    action?: AuditAction,
  ) => Promise<EntityOf<S>>;
}
type PartialValues<S extends { readonly types?: { readonly values: unknown } }> = Partial<
  NonNullable<S["types"]>["values"]
>;

/** A query that selects rows of the resource's table, such as `db.selectFrom("stores").where(…)`. */
export interface Selection {
  readonly selectAll: () => unknown;
}
