import { useMemo, useState } from "preact/hooks";
import { Button } from "../layout/button.tsx";
import { CopyButton } from "./copy.tsx";
import { Escaped } from "./escaped.tsx";
import { indentJson, isJson } from "./indent-json.ts";
import { JsonLine } from "./json-line.tsx";
import { formatBytes } from "./numbers.ts";
import { VirtualLines } from "./virtual-lines.tsx";

interface Props {
  /** Text, or bytes for binary content. */
  readonly content: string | Uint8Array;
  readonly label: string;
  readonly fileName?: string;
}

const FORMS = ["JSON", "Text", "Hex"] as const;
type Form = (typeof FORMS)[number];

/** Maximum number of characters per line. Longer lines are split, because a line of several megabytes would be slow to render. */
const MAX_LINE = 400;
const BYTES_PER_LINE = 16;

/** Shows received data as JSON, text or hex. The data is never interpreted as HTML. */
export function Payload({ content, label, fileName = "payload.txt" }: Props) {
  const bytes = useMemo(
    () => (typeof content === "string" ? new TextEncoder().encode(content) : content),
    [content],
  );
  const text = useMemo(
    () =>
      typeof content === "string" ? content : new TextDecoder("utf-8", { fatal: false }).decode(content),
    [content],
  );
  const hasJson = useMemo(() => isJson(text), [text]);
  const [chosen, setChosen] = useState<Form>();
  const form = chosen ?? (hasJson ? "JSON" : isText(text) ? "Text" : "Hex");
  const lines = useMemo(() => {
    if (form === "Hex") return undefined;
    return (form === "JSON" ? indentJson(text) : text).split(/\r\n|\n/).flatMap(breakLine);
  }, [form, text]);
  const count = lines?.length ?? Math.ceil(bytes.length / BYTES_PER_LINE);
  return (
    <div class="payload">
      <div class="payload-bar">
        <div class="segments" role="group" aria-label={`Format of ${label}`}>
          {FORMS.filter((one) => one !== "JSON" || hasJson).map((one) => (
            <button key={one} type="button" aria-pressed={one === form} onClick={() => setChosen(one)}>
              {one}
            </button>
          ))}
        </div>
        <span class="faint">{formatBytes(bytes.length)}</span>
        <span class="grow" />
        <CopyButton text={text} what={label} />
        <Button look="quiet" onClick={() => save(bytes, fileName)}>
          Download
        </Button>
      </div>
      {count === 0 ? (
        <p class="faint pad">Empty</p>
      ) : (
        <VirtualLines
          count={count}
          label={`${label}, as ${form}`}
          Line={form === "JSON" ? JsonLine : Escaped}
          lineAt={(index) => (lines ? (lines[index] ?? "") : hexLine(bytes, index))}
        />
      )}
    </div>
  );
}

const isText = (text: string): boolean =>
  !["\0", "\ufffd"].some((one) => text.slice(0, 10_000).includes(one));

function breakLine(line: string): readonly string[] {
  if (line.length <= MAX_LINE) return [line];
  return Array.from({ length: Math.ceil(line.length / MAX_LINE) }, (_, index) =>
    line.slice(index * MAX_LINE, (index + 1) * MAX_LINE),
  );
}

function hexLine(bytes: Uint8Array, index: number): string {
  const part = [...bytes.subarray(index * BYTES_PER_LINE, (index + 1) * BYTES_PER_LINE)];
  const hex = part.map((byte) => byte.toString(16).padStart(2, "0")).join(" ");
  const shown = part.map((byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : ".")).join("");
  return `${(index * BYTES_PER_LINE).toString(16).padStart(8, "0")}  ${hex.padEnd(BYTES_PER_LINE * 3 - 1)}  ${shown}`;
}

/** Downloads the bytes as a file. The binary content type prevents the browser from displaying the file. */
function save(bytes: Uint8Array, fileName: string): void {
  const url = URL.createObjectURL(new Blob([bytes.slice()], { type: "application/octet-stream" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = fileName;
  link.click();
  URL.revokeObjectURL(url);
}
