import { useState } from "preact/hooks";
import { Confirm } from "../../kit/feedback/confirm.tsx";
import { TextArea } from "../../kit/form/field.tsx";
import { parseCursor, type ShownSource } from "./shown-source.ts";

interface Props {
  readonly path: string;
  readonly shown: ShownSource;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

export function MoveCursor({ path, shown, onClose, onDone }: Props) {
  const { value, version } = shown.source.cursor;
  // Version of the source when the dialog opened. The API rejects the new cursor if the source has advanced since then.
  const [seen] = useState(version);
  const [text, setText] = useState(() => JSON.stringify(value, null, 2));
  const parsed = parseCursor(text);
  const body = { value: parsed?.value, version: seen };
  return (
    <Confirm
      title="Move the cursor"
      verb="Move"
      call={{ method: "PUT", path: `${path}/source/cursor`, body }}
      isReady={parsed !== undefined}
      onClose={onClose}
      done="Cursor set. The source continues from it within two seconds."
      onDone={onDone}
    >
      <div class="stack">
        <p>
          If you move the cursor back, items are fetched again, but events with remembered ids are not
          published twice. If you move it ahead, the items in between are skipped.
        </p>
        <TextArea
          label="Cursor"
          error={parsed === undefined ? "must be JSON" : undefined}
          rows={6}
          value={text}
          onChange={setText}
        />
        {version !== seen && (
          <p class="note warn">
            The source has moved since then. Open this dialog again to see its current cursor.
          </p>
        )}
      </div>
    </Confirm>
  );
}
