/** One event of a stream of server-sent events: its data as it was sent. */
export interface StreamEvent {
  readonly data: string;
}

/**
 * Takes the text of an event stream in pieces (WHATWG HTML, section 9.2.6). A line may end by CR, LF or both, and be cut anywhere; an
 * event without data moves the reader on and is no event.
 */
export function createParser(on: {
  readonly onEvent: (event: StreamEvent) => void;
  readonly onId: (id: string) => void;
}): (text: string) => void {
  let rest = "";
  let data: string[] = [];
  let id: string | undefined;
  function take(line: string): void {
    if (line === "") {
      if (data.length > 0) on.onEvent({ data: data.join("\n") });
      // The reader stands behind the event once it is there as a whole.
      if (id !== undefined) on.onId(id);
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
    // A CR at the end may be the half of a line's end.
    const isHalf = rest.endsWith("\r");
    const lines = (isHalf ? rest.slice(0, -1) : rest).split(/\r\n|\r|\n/);
    rest = (lines.pop() ?? "") + (isHalf ? "\r" : "");
    for (const line of lines) take(line);
  };
}
