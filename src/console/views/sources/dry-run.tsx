import { useState } from "preact/hooks";
import { type Schemas, send } from "../../api/client.ts";
import { useAction } from "../../api/use-action.ts";
import { Dialog } from "../../kit/feedback/dialog.tsx";
import { ErrorNote } from "../../kit/feedback/states.tsx";
import { TextField } from "../../kit/form/field.tsx";
import { Form } from "../../kit/form/form.tsx";
import { Button } from "../../kit/layout/button.tsx";
import { Badge, Facts } from "../../kit/layout/page.tsx";
import { ApiCall } from "../../kit/text/api-call.tsx";
import { formatBytes, formatCount } from "../../kit/text/numbers.ts";
import { Payload } from "../../kit/text/payload.tsx";
import { UntrustedText } from "../../kit/text/untrusted-text.tsx";
import { parseCursor } from "./shown-source.ts";

type Result = Schemas["DryRun"];

interface Props {
  /** API path of the channel. */
  readonly path: string;
  readonly cursor: unknown;
  readonly onClose: () => void;
}

/** Dialog that runs the next poll without publishing events. It shows the request, the items, the events and the next cursor. */
export function DryRun({ path, cursor, onClose }: Props) {
  const [text, setText] = useState(() => (cursor === null ? "" : JSON.stringify(cursor)));
  const [result, setResult] = useState<Result>();
  const given = text.trim() === "" ? undefined : parseCursor(text);
  const isBroken = text.trim() !== "" && given === undefined;
  const call = {
    method: "POST",
    path: `${path}/source/dry-run`,
    body: given === undefined ? {} : { cursor: given.value },
  };
  const action = useAction(async () => setResult(await send<Result>(call.method, call.path, call)));
  return (
    <Dialog title="Dry run" onClose={onClose} wide>
      <Form onSubmit={() => isBroken || action.run()}>
        <TextField
          label="From this cursor"
          error={isBroken ? "must be JSON" : undefined}
          value={text}
          placeholder="current cursor"
          onChange={setText}
        />
        <div class="row">
          <Button type="submit" look="primary" disabled={action.isRunning || isBroken}>
            {action.isRunning ? "Running …" : "Run"}
          </Button>
          <ApiCall call={call} />
        </div>
        {action.error && <ErrorNote error={action.error} />}
        {result && <Shown result={result} />}
      </Form>
    </Dialog>
  );
}

function Shown({ result }: { readonly result: Result }) {
  const { request, response, items, known, total, cursor, end } = result;
  const isWell = end.kind === "done" || end.kind === "finished";
  return (
    <div class="stack" role="status">
      <Facts
        facts={{
          End: (
            <span class="row">
              <Badge tone={isWell ? "ok" : "bad"}>{end.kind}</Badge>
              {end.message !== null && <UntrustedText>{end.message}</UntrustedText>}
            </span>
          ),
          Request: `${request.method} ${request.url}`,
          Response: response === null ? "no response" : `${response.status}, ${formatBytes(response.bytes)}`,
          "New items": formatCount(total),
          "Known items": formatCount(known),
          "Next cursor": JSON.stringify(cursor),
        }}
      />
      {items.map((item, index) => (
        <Payload
          key={index}
          content={JSON.stringify(item)}
          label={`item ${index + 1}`}
          fileName={`item-${index + 1}.json`}
        />
      ))}
      {items.length < total && (
        <p class="faint">
          Showing the first {formatCount(items.length)} of {formatCount(total)}.
        </p>
      )}
    </div>
  );
}
