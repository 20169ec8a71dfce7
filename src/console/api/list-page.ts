/** A page of an API list. */
export interface ListPage<T> {
  readonly rows: readonly T[];
  readonly total: number;
  /** Cursor of the next page of a list that is paged by a cursor. `undefined` on the last page. */
  readonly next?: string | undefined;
  /** Number of items that the API has skipped or searched for this page. `undefined` for lists that cannot be searched. */
  readonly scanned?: number | undefined;
}
