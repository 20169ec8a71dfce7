/** A server-sent event. `data` is its text as received. */
export interface StreamEvent {
  readonly data: string;
}

/**
 * Creates a parser for an event stream (WHATWG HTML, section 9.2.6). Call the parser with each chunk of text; a chunk
 * can end anywhere. A line ends with CR, LF or CRLF. An event without data only advances the position.
 */
export function createParser(callbacks: {
  readonly onEvent: (event: StreamEvent) => void;
  readonly onId: (id: string) => void;
}): (text: string) => void {
  let rest = "";
  let data: string[] = [];
  let id: string | undefined;
  function parseLine(line: string): void {
    if (line === "") {
      if (data.length > 0) callbacks.onEvent({ data: data.join("\n") });
      // Report the id only after the whole event has arrived, because the reader would skip an incomplete event after a reconnect.
      if (id !== undefined) callbacks.onId(id);
      data = [];
      return;
    }
    const colon = line.indexOf(":");
    const name = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "data") data.push(value);
    else if (name === "id" && !value.includes("\0")) id = value;
  }
  return (text) => {
    rest += text;
    // Wait for the next chunk, because a CR at the end of this chunk can be the first half of a CRLF.
    const endsWithCr = rest.endsWith("\r");
    const lines = (endsWithCr ? rest.slice(0, -1) : rest).split(/\r\n|\r|\n/);
    rest = (lines.pop() ?? "") + (endsWithCr ? "\r" : "");
    for (const line of lines) parseLine(line);
  };
}
