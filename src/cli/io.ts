/** A stream that a command writes to. */
export interface OutStream {
  readonly write: (text: string) => unknown;
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
}

/** A stream that a command reads; of a terminal key by key. */
export interface InStream extends AsyncIterable<Uint8Array | string> {
  readonly isTTY?: boolean | undefined;
  readonly setRawMode?: (raw: boolean) => unknown;
}

/** What a command has of the process it runs in. */
export interface Io {
  readonly stdout: OutStream;
  readonly stderr: OutStream;
  readonly stdin: InStream;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Aborts when the caller wants it to end. */
  readonly signal: AbortSignal;
}
