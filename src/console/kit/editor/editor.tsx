import { useEffect, useRef, useState } from "preact/hooks";
import type { ErrorDetail } from "../../api/api-error.ts";
import type { OpenedEditor } from "./open-editor.ts";

interface Props {
  /** Initial text. Later changes of this property are ignored. */
  readonly text: string;
  readonly label: string;
  /** Errors to mark in the text. Their paths start at the whole value: `[0].typePath`. */
  readonly details?: readonly ErrorDetail[];
  readonly onChange: (text: string) => void;
}

const NO_DETAILS: readonly ErrorDetail[] = [];

/** JSON editor. Shows a plain text area until the editor library is loaded, or if the library fails to load. */
export function JsonEditor({ text, label, details = NO_DETAILS, onChange }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const [opened, setOpened] = useState<OpenedEditor>();
  const latest = useRef({ text, onChange });
  latest.current.onChange = onChange;
  useEffect(() => {
    let editor: OpenedEditor | undefined;
    let isGone = false;
    void import("./open-editor.ts").then(({ openEditor }) => {
      if (isGone || !place.current) return;
      editor = openEditor(place.current, {
        text: latest.current.text,
        label,
        onChange: (changed) => latest.current.onChange(changed),
      });
      setOpened(editor);
    });
    return () => {
      isGone = true;
      editor?.close();
    };
  }, []);
  useEffect(() => opened?.showErrors(details), [opened, details]);
  return (
    <div class="editor">
      {opened === undefined && (
        <textarea
          rows={20}
          spellcheck={false}
          aria-label={label}
          defaultValue={text}
          onInput={({ currentTarget: { value } }) => {
            latest.current.text = value;
            onChange(value);
          }}
        />
      )}
      <div ref={place} />
    </div>
  );
}
