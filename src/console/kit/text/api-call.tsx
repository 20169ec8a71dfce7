import { formatCurl, type ShownCall } from "../../api/curl.ts";
import { Code } from "./code.tsx";

/** Expandable curl command that sends the same API request. It contains a shell variable instead of the API key. */
export function ApiCall({ call, label = "API call" }: { readonly call: ShownCall; readonly label?: string }) {
  return (
    <details class="api-call">
      <summary>{label}</summary>
      <Code text={formatCurl(call, location.origin)} label="curl" />
    </details>
  );
}
