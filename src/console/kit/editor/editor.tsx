import { useEffect, useRef, useState } from "preact/hooks";
import type { OpenedEditor } from "./open-editor.ts";

interface Props {
  /** Initial text. Later changes of this property are ignored. */
  readonly text: string;
  readonly label: string;
  readonly onChange: (text: string) => void;
}

/** JSON editor. Shows a plain text area until the editor library is loaded, or if the library fails to load. */
export function JsonEditor({ text, label, onChange }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const [isPlain, setPlain] = useState(true);
  const latest = useRef({ text, onChange });
  latest.current.onChange = onChange;
  useEffect(() => {
    let opened: OpenedEditor | undefined;
    let isGone = false;
    void import("./open-editor.ts").then(({ openEditor }) => {
      if (isGone || !place.current) return;
      opened = openEditor(place.current, {
        text: latest.current.text,
        label,
        onChange: (changed) => latest.current.onChange(changed),
      });
      setPlain(false);
    });
    return () => {
      isGone = true;
      opened?.close();
    };
  }, []);
  return (
    <div class="editor">
      {isPlain && (
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
