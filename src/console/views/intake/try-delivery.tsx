import { useState } from "preact/hooks";
import { api, type Schemas } from "../../api/client.ts";
import { useAction } from "../../api/use-action.ts";
import { FoundValues } from "../../kit/explained/explained-items.tsx";
import { ErrorNote } from "../../kit/feedback/states.tsx";
import { TextArea, TextField, toLines } from "../../kit/form/field.tsx";
import { Form } from "../../kit/form/form.tsx";
import { Button } from "../../kit/layout/button.tsx";
import { Badge, Section } from "../../kit/layout/page.tsx";
import { ApiCall } from "../../kit/text/api-call.tsx";
import { formatCount } from "../../kit/text/numbers.ts";
import { UntrustedCode, UntrustedText } from "../../kit/text/untrusted-text.tsx";
import { hasPermission } from "../../session/session.ts";

type Explanation = Schemas["IntakeExplanation"];
type Tested = Schemas["TestedIntake"];

type Result =
  | { readonly is: "explained"; readonly explanation: Explanation }
  | { readonly is: "tested"; readonly tested: Tested };

const EMPTY = { body: "", headers: "", query: "", routeBy: "", routeKey: "" };

interface Props {
  readonly blueprintId: string;
  /** Preset of the intake, whose sample can be used. */
  readonly preset: string | undefined;
}

/** Section that explains how the intake routes a delivery, and sends test events. */
export function TryDelivery({ blueprintId, preset }: Props) {
  const [given, setGiven] = useState(EMPTY);
  const [verify, setVerify] = useState(false);
  const [result, setResult] = useState<Result>();
  const { body, headers, query, routeKey } = given;
  const path = { blueprintId };
  const delivery = { headers: parseHeaders(headers), query, ...(body !== "" && { body }) };
  const routeBy = [...toLines(given.routeBy)];
  const explained = { ...delivery, verify, ...(routeBy.length > 0 && { routeBy }) };
  const tested = { ...delivery, ...(routeKey !== "" && { routeKey }) };
  const action = useAction(async (what: "explain" | "test" | "sample") => {
    setResult(undefined);
    if (what === "explain") {
      const explanation = await api.post("/blueprints/{blueprintId}/intake/explain", {
        path,
        body: explained,
      });
      setResult({ is: "explained", explanation });
    } else if (what === "test") {
      const answer = await api.post("/blueprints/{blueprintId}/intake/test", { path, body: tested });
      setResult({ is: "tested", tested: answer });
    } else if (preset !== undefined) {
      const { sample } = await api.get("/presets/{name}", { path: { name: preset } });
      const lines = Object.entries(sample.headers).map(([name, value]) => `${name}: ${value}`);
      setGiven({ ...given, body: sample.body, headers: lines.join("\n") });
    }
  });
  const field = (name: keyof typeof EMPTY) => ({
    value: given[name],
    onChange: (value: string) => setGiven({ ...given, [name]: value }),
  });
  const at = `/blueprints/${encodeURIComponent(blueprintId)}/intake`;
  return (
    <Section title="Try a delivery">
      <Form onSubmit={() => action.run("explain")}>
        <TextArea
          label="Body"
          help={preset !== undefined && "Without a body, a test event is the sample of the preset."}
          rows={5}
          {...field("body")}
        />
        <TextArea
          label="Headers"
          isOptional
          help="One per line, such as x-shop: acme.example"
          rows={2}
          placeholder="x-shop: acme.example"
          {...field("headers")}
        />
        <TextField label="Query" isOptional {...field("query")} />
        <TextArea
          label="Route key paths to try"
          isOptional
          help="One per line. “Explain” uses them in place of the intake's own."
          rows={2}
          {...field("routeBy")}
        />
        <TextField
          label="Route key of the test event"
          isOptional
          help="By default, the test event keeps the key in its body."
          {...field("routeKey")}
        />
        <label class="check">
          <input
            type="checkbox"
            checked={verify}
            onChange={(event) => setVerify(event.currentTarget.checked)}
          />
          Verify the signature when explaining
        </label>
        {action.error && <ErrorNote error={action.error} />}
        <div class="row wrap">
          <Button type="submit" disabled={action.isRunning || (body === "" && query === "")}>
            Explain
          </Button>
          {hasPermission("blueprints.write") && (
            <Button
              disabled={action.isRunning || (body === "" && preset === undefined)}
              onClick={() => void action.run("test")}
            >
              Send test event
            </Button>
          )}
          {preset !== undefined && (
            <Button look="quiet" disabled={action.isRunning} onClick={() => void action.run("sample")}>
              Use the preset's sample
            </Button>
          )}
        </div>
        <div aria-live="polite">
          {result?.is === "explained" && <Explained explanation={result.explanation} />}
          {result?.is === "tested" && <TestedGroups tested={result.tested} />}
        </div>
        <ApiCall call={{ method: "POST", path: `${at}/explain`, body: explained }} />
        <ApiCall call={{ method: "POST", path: `${at}/test`, body: tested }} />
      </Form>
    </Section>
  );
}

function Explained({ explanation }: { readonly explanation: Explanation }) {
  const { verification, isPaused, received, items } = explanation;
  return (
    <ol class="explained">
      {verification.result === "refused" && (
        <li class="note warn">The signature is rejected: {verification.message}</li>
      )}
      {isPaused && <li class="note">The intake is paused, so it stores deliveries and routes them later.</li>}
      {items.map(({ item, routeKey, paths, result, detail, appId }) => (
        <li key={item ?? "whole"} class="explained-item">
          <h3>{item === null ? "The whole delivery" : `Item ${item}`}</h3>
          <Route result={result} routeKey={routeKey} appId={appId} detail={detail} />
          {paths.map((found) => (
            <p key={found.path} class="explained-event">
              <FoundValues found={found} />
            </p>
          ))}
        </li>
      ))}
      {received > items.length && <li class="faint">{formatCount(received)} items in total</li>}
    </ol>
  );
}

function TestedGroups({ tested: { verification, groups } }: { readonly tested: Tested }) {
  return (
    <ol class="explained">
      {verification.message !== null && <li class="note warn">Not signed: {verification.message}</li>}
      {groups.map(({ routeKey, items, result, detail, appId, published, failed }) => (
        <li key={routeKey ?? "none"} class="explained-item">
          <h3>
            {formatCount(items)} {items === 1 ? "item" : "items"}
          </h3>
          <Route result={result} routeKey={routeKey} appId={appId} detail={detail} />
          {published !== null && (
            <p>
              {formatCount(published)} published
              {failed !== null && failed > 0 && `, ${formatCount(failed)} rejected by the channel`}
            </p>
          )}
        </li>
      ))}
    </ol>
  );
}

type RouteProps = Pick<Explanation["items"][number], "result" | "routeKey" | "appId" | "detail">;

function Route({ result, routeKey, appId, detail }: RouteProps) {
  return (
    <p class="explained-event">
      <Badge tone={result === "routed" ? "ok" : "warn"}>{result}</Badge>
      {routeKey !== null && <UntrustedCode max={200}>{routeKey}</UntrustedCode>}
      {appId !== null && <span>→ {appId}</span>}
      {detail !== null && <UntrustedText max={600}>{detail}</UntrustedText>}
    </p>
  );
}

/** Parses lines such as `name: value`. The values of a repeated name form an array. */
function parseHeaders(text: string): Record<string, string | string[]> {
  const headers: Record<string, string | string[]> = {};
  for (const line of toLines(text)) {
    const colon = line.indexOf(":");
    const name = line.slice(0, colon < 0 ? line.length : colon).toLowerCase();
    const value = colon < 0 ? "" : line.slice(colon + 1).trim();
    const before = headers[name];
    headers[name] = before === undefined ? value : [before, value].flat();
  }
  return headers;
}
