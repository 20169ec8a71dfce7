import { useState } from "preact/hooks";
import { type Schemas, send } from "../../api/client.ts";
import { Confirm } from "../../kit/feedback/confirm.tsx";
import { toast } from "../../kit/feedback/toast.tsx";
import { parseCursor, type ShownSource } from "./shown-source.ts";

interface Props {
  readonly path: string;
  readonly shown: ShownSource;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

/** Sets the cursor by hand; refused where the source has moved since it was shown. */
export function MoveCursor({ path, shown, onClose, onDone }: Props) {
  const { value, version } = shown.source.cursor;
  // What was shown is what is changed: a source that moves meanwhile is not set back unseen.
  const [seen] = useState(version);
  const [text, setText] = useState(() => JSON.stringify(value, null, 2));
  const parsed = parseCursor(text);
  const body = { value: parsed?.value, version: seen };
  const call = { method: "PUT", path: `${path}/source/cursor`, body };
  return (
    <Confirm
      title="Move the cursor"
      verb="Move"
      call={call}
      onClose={onClose}
      act={async () => {
        if (parsed === undefined) return;
        await send<Schemas["SourceCursor"]>(call.method, call.path, call);
        toast("Moved: the source goes on from there within two seconds.");
        onDone();
      }}
    >
      <div class="stack">
        <p>
          Set back, it fetches again: events whose ids are remembered are not published twice. Set ahead, what
          lies between is left out.
        </p>
        <label class="field">
          <span class="field-name">Cursor</span>
          <textarea
            rows={6}
            spellcheck={false}
            aria-invalid={parsed === undefined}
            value={text}
            onInput={(event) => setText(event.currentTarget.value)}
          />
          {parsed === undefined && <span class="field-problem">is not JSON</span>}
        </label>
        {version !== seen && (
          <p class="note warn">The source has moved since: open this again to see where it stands now.</p>
        )}
      </div>
    </Confirm>
  );
}
