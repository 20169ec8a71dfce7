import type { z } from "zod";
import type { AuditAction, AuditEntity } from "../../data/accounts/audit-entry.ts";
import type { Queryable, Trx } from "../../data/database.ts";
import type { Row } from "../../data/tables.ts";
import type { Caller } from "../../http/context.ts";
import type { Shown } from "../../http/fields.ts";
import type { Listed, Page } from "../../http/page.ts";
import type { Versioned } from "../../http/version.ts";
import type { Deps } from "./deps.ts";
import type { Fields } from "./field.ts";
import type { OwnedTable, Reference } from "./references.ts";
import type { Endpoint, QuerySchema, Route, RouteSpec } from "./route.ts";
import type { EntityOf, InsideOf, RowOf, RowOfShape, Shape, ValuesOf } from "./shape.ts";

export interface ResourceSpec<F extends Fields, X extends z.ZodRawShape, Q extends z.ZodRawShape> {
  /** Path of the list. Its first segment names the permissions, such as `apps.read` and `apps.write`. */
  readonly path: `/${string}`;
  readonly tag: string;
  /** Name of the resource, from which operation ids and the path parameter are derived: `apiKey` gives `createApiKey` and `:apiKeyId`. */
  readonly name: string;
  /** Singular noun for messages and documentation. Default: the words of `name`. */
  readonly words?: string;
  readonly table: TableWith<F>;
  readonly shape: Shape<F, X>;
  /** Entity type for the audit log. If it is missing, writes are not recorded there. */
  readonly audit?: AuditEntity;
  /** Kind of change that each write reports to the workers. The key is the row's id, or the organization's id for `access`. */
  readonly feed?: "access" | "app" | "connection";
  /** Column that contains the organization's id: `id` in the table of organizations. Default: `organizationId`. */
  readonly owner?: "id";
  /** Takes creation times from the clock of the database, because the clocks of several gateways differ. */
  readonly datedBy?: "database";
  /** Fields that refer to other rows. A write that sets a new reference gets a 404 if the row is missing, and locks it against deletion. */
  readonly references?: { readonly [K in keyof F]?: Reference };
  /** Parent resource, whose id is part of the path. */
  readonly within?: Within;
  /** 409 response for a duplicate unique value. With `of: "new"`, only POST documents it, because the value cannot change later. */
  readonly taken?: ConflictSpec & { readonly of?: "new" };
  /** 409 response for the deletion of a row to which other rows still refer. */
  readonly inUse?: ConflictSpec;
  /** Selects the rows that a caller can read. Default: all rows of the caller's organization. */
  readonly visible?: (db: Queryable, caller: Caller) => Selection;
  /** Message of a 403 response for changing a visible row of another organization. Without a message, the response is a 404. */
  readonly foreign?: string;
  /** Selects the rows that a caller can try to change or delete. Default: visible rows of the caller's organization. */
  readonly changeable?: (db: Queryable, caller: Caller) => Selection;
  /** Returns the version for `ETag`, `If-Match` and `If-None-Match`. Requires a field `version`, which counts writes. */
  readonly version?: (row: RowOf<F>) => Versioned;
  /** Query parameters of the list, and the function that applies them. Default: a list of all rows of the organization. */
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
  /** Loads the nested parts of several responses at once. Returns a function that gives the parts for one row. */
  readonly inside?: (
    db: Queryable,
    rows: readonly RowOf<F>[],
    caller: Caller,
  ) => Promise<(row: RowOf<F>) => InsideOf<X>>;
  /** Creates the response for one row, if only that response has the optional parts of the shape. @throws ApiError 404 */
  readonly answer?: (db: Queryable, caller: Caller, id: string) => Promise<Response>;
  /** Returns stricter request schemas, for fields whose stored values may no longer be valid in new requests. */
  readonly narrow?: (deps: Deps) => z.ZodRawShape;
  /**
   * Like `prepare`, but called before the transaction, with the body only. Use it for slow checks, which would keep a
   * database connection busy.
   */
  readonly readBody?: (
    body: Partial<ValuesOf<F>>,
    deps: Deps,
    caller: Caller,
  ) => Promise<Partial<Shown<ValuesOf<F>>>>;
  /** Reads the current values of fields that have no column, so that a patch can be applied to them. */
  readonly readAside?: (trx: Trx, row: RowOf<F>) => Promise<Partial<ValuesOf<F>>>;
  /** Called before the row is locked, for locks on other rows that must be taken first. */
  readonly lockFirst?: (trx: Trx, caller: Caller, patch: object) => Promise<void>;
  /** Called before a row is written. Throws to reject the write, or returns values that replace those in the request. */
  readonly prepare?: (write: Write<F>) => Promise<Partial<ValuesOf<F>>>;
  /** Called after the row is written, to write related rows in the same transaction. */
  readonly afterWrite?: (write: Write<F> & { readonly row: RowOf<F> }) => Promise<void>;
  /** Called instead of the default deletion. Either throws to reject the request, or calls `remove` to delete the row. */
  readonly remove?: (
    removal: Pick<Write<F>, "trx" | "caller" | "deps" | "nowMs"> & {
      readonly row: RowOf<F>;
      readonly remove: () => Promise<void>;
    },
  ) => Promise<void>;
  /** Set if the body of a PUT must contain the id. */
  readonly identified?: true;
  /** Additional OpenAPI documentation per operation. */
  readonly notes?: {
    readonly [O in Operation]?: O extends "create"
      ? /** `body` overrides the schema derived from the fields. */ Notes & {
          readonly body?: z.ZodType<object>;
        }
      : Notes;
  };
  /** Standard operations that the resource does not have, for example because `more` replaces them. */
  readonly without?: readonly Operation[];
  readonly more?: (deps: Deps, kit: Kit<Shape<F, X>>) => readonly Route[];
}

export type Operation = "create" | "list" | "get" | "update" | "delete";
type Notes = Pick<
  RouteSpec<Endpoint, QuerySchema, z.ZodType, z.ZodType>,
  "description" | "missing" | "conflict" | "confined" | "allows"
>;

type TableWith<F extends Fields> = {
  [T in OwnedTable]: [RowOf<F>, Row<T>] extends [Row<T>, RowOf<F>] ? T : never;
}[OwnedTable];

/** A 409 response: its condition for the API reference, and its message for the client. */
export interface ConflictSpec {
  readonly when: string;
  readonly message: string;
}

export interface Within {
  /** Name of the path parameter with the parent's id. The field that stores this id has the same name. */
  readonly param: string;
  readonly parent: Reference & { readonly table: OwnedTable };
  /** Selects the parents that a caller can see. Default: all parents of the caller's organization. */
  readonly visible?: (db: Queryable, caller: Caller) => Selection;
  /** When and how a write locks the parent's row. Default: `create`, an exclusive lock only when a row is created. */
  readonly lock?: "create" | "createShared" | "always" | "alwaysShared";
}

export interface Write<F extends Fields> {
  readonly trx: Trx;
  readonly caller: Caller;
  readonly deps: Deps;
  readonly nowMs: number;
  readonly id: string;
  /** The row before the change. `undefined` on creation. */
  readonly before: RowOf<F> | undefined;
  /** Values of all fields as they will be written, with the request body applied. */
  readonly values: ValuesOf<F>;
}

/** Parent ids from the path, keyed by parameter name. */
export type ParentIds = Readonly<Record<string, string>>;

/** Standard operations, for use in the routes of `more`. `S` is the type of the resource's shape. */
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
  /** Inserts a row like a POST request. Unlike a request, `values` may contain hidden fields. */
  readonly insert: (
    trx: Trx,
    caller: Caller,
    place: ParentIds,
    values: PartialValues<S>,
  ) => Promise<RowOfShape<S>>;
  /** Locks the row, writes the fields that `to` returns, and renders the changed row. @throws ApiError 404 if the row does not exist */
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

/** A query that selects whole rows, such as `db.selectFrom("stores").where(…)`. */
export interface Selection {
  readonly selectAll: () => unknown;
}
