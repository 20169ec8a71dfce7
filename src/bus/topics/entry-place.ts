/** Position of an entry. */
export interface EntryPlace {
  readonly topic: string;
  readonly entryId: string;
}

/** An entry that is listed but not read. */
export interface ListedEntry extends EntryPlace {
  /** Size of the entry's fields. */
  readonly bytes: number;
}

export type ListedId = Omit<ListedEntry, "topic">;
