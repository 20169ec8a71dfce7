import { useState } from "preact/hooks";
import { api, type Schemas } from "../../api/client.ts";
import { useAction } from "../../api/use-action.ts";
import { FoundValues } from "../../kit/explained/explained-items.tsx";
import { ErrorNote } from "../../kit/feedback/states.tsx";
import { Form } from "../../kit/form/form.tsx";
import { Button } from "../../kit/layout/button.tsx";
import { Badge, Section } from "../../kit/layout/page.tsx";
import { ApiCall } from "../../kit/text/api-call.tsx";
import { formatCount } from "../../kit/text/numbers.ts";
import { UntrustedText } from "../../kit/text/untrusted-text.tsx";
import { hasPermission } from "../../session/session.ts";

type Explanation = Schemas["IntakeExplanation"];
type Tested = Schemas["TestedIntake"];

type Result =
  | { readonly is: "explained"; readonly explanation: Explanation }
  | { readonly is: "tested"; readonly tested: Tested };

interface Props {
  readonly blueprintId: string;
  /** Whether an empty body stands for the sample of a preset. */
  readonly hasSample: boolean;
}

/** Section that explains how the intake routes a delivery, and sends test events. */
export function TryDelivery({ blueprintId, hasSample }: Props) {
  const [body, setBody] = useState("");
  const [headers, setHeaders] = useState("");
  const [routeKey, setRouteKey] = useState("");
  const [result, setResult] = useState<Result>();
  const path = { blueprintId };
  const given = { headers: parseHeaders(headers), ...(body !== "" && { body }) };
  const forTest = { ...given, ...(routeKey !== "" && { routeKey }) };
  const explain = useAction(async () => {
    const explanation = await api.post("/blueprints/{blueprintId}/intake/explain", {
      path,
      body: { ...given, verify: false },
    });
    setResult({ is: "explained", explanation });
  });
  const test = useAction(async () => {
    const tested = await api.post("/blueprints/{blueprintId}/intake/test", { path, body: forTest });
    setResult({ is: "tested", tested });
  });
  const isRunning = explain.isRunning || test.isRunning;
  const error = explain.error ?? test.error;
  const at = `/blueprints/${encodeURIComponent(blueprintId)}/intake`;
  return (
    <Section title="Try a delivery">
      <Form onSubmit={explain.run}>
        <label class="field">
          <span class="field-name">Body</span>
          <textarea
            rows={5}
            spellcheck={false}
            value={body}
            onInput={(event) => setBody(event.currentTarget.value)}
          />
          {hasSample && (
            <span class="field-help">Without a body, a test event is the sample of the preset.</span>
          )}
        </label>
        <label class="field">
          <span class="field-name">
            Headers <span class="faint">optional, one per line</span>
          </span>
          <textarea
            rows={2}
            spellcheck={false}
            placeholder="x-shop: acme.example"
            value={headers}
            onInput={(event) => setHeaders(event.currentTarget.value)}
          />
        </label>
        <label class="field">
          <span class="field-name">
            Route key of the test event <span class="faint">optional</span>
          </span>
          <input
            type="text"
            autoComplete="off"
            spellcheck={false}
            value={routeKey}
            onInput={(event) => setRouteKey(event.currentTarget.value)}
          />
          <span class="field-help">By default, the test event keeps the key in its body.</span>
        </label>
        {error && <ErrorNote error={error} />}
        <div class="row wrap">
          <Button type="submit" disabled={isRunning || body === ""}>
            Explain
          </Button>
          {hasPermission("blueprints.write") && (
            <Button disabled={isRunning || (body === "" && !hasSample)} onClick={() => void test.run()}>
              Send test event
            </Button>
          )}
        </div>
        <div aria-live="polite">
          {result?.is === "explained" && <Explained explanation={result.explanation} />}
          {result?.is === "tested" && <TestedGroups tested={result.tested} />}
        </div>
        <ApiCall
          call={
            result?.is === "tested"
              ? { method: "POST", path: `${at}/test`, body: forTest }
              : { method: "POST", path: `${at}/explain`, body: { ...given, verify: false } }
          }
        />
      </Form>
    </Section>
  );
}

function Explained({ explanation: { received, items } }: { readonly explanation: Explanation }) {
  return (
    <ol class="explained">
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
      {routeKey !== null && (
        <code>
          <UntrustedText max={200}>{routeKey}</UntrustedText>
        </code>
      )}
      {appId !== null && <span>→ {appId}</span>}
      {detail !== null && <UntrustedText max={600}>{detail}</UntrustedText>}
    </p>
  );
}

/** Parses lines such as `name: value`. Ignores other lines. */
const parseHeaders = (text: string): Record<string, string> =>
  Object.fromEntries(
    text.split("\n").flatMap((line) => {
      const [, name = "", value = ""] = /^\s*([^:\s]+)\s*:\s*(.*?)\s*$/.exec(line) ?? [];
      return name === "" ? [] : [[name.toLowerCase(), value]];
    }),
  );
