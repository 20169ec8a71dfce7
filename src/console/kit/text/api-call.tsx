import { curlOf, type ShownCall } from "../../api/curl.ts";
import { Code } from "./code.tsx";

/** The same by the API: a line for a shell, with the key by its name. */
export function ApiCall({ call, label = "API call" }: { readonly call: ShownCall; readonly label?: string }) {
  return (
    <details class="api-call">
      <summary>{label}</summary>
      <Code text={curlOf(call, location.origin)} label="curl" />
    </details>
  );
}
