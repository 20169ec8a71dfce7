import { UntrustedCode, UntrustedText } from "./untrusted-text.tsx";

/** Pages of the documentation that explain a setting or a field. */
const PAGES: Readonly<Record<string, string>> = {
  as: "missed-events",
  concurrency: "handlers",
  connectionId: "polling#with-oauth",
  expectEverySeconds: "sse",
  idPath: "definitions",
  lastError: "sources",
  overLimit: "limits",
  registration: "registrations",
  retention: "limits",
};

/**
 * Shows a text of the gateway. Names of settings between backticks become links to the documentation. The text can quote a foreign
 * server, so all of its parts are shown as untrusted text.
 */
export function SettingText({ children }: { readonly children: string }) {
  const parts = children.split(/`([^`]{1,100})`/);
  return (
    <span>
      {parts.map((part, index) => {
        if (index % 2 === 0) return part !== "" && <UntrustedText key={index}>{part}</UntrustedText>;
        const page = /^INLET_|_URL$/.test(part) ? "settings" : PAGES[part];
        const name = <UntrustedCode key={index}>{part}</UntrustedCode>;
        return page === undefined ? (
          name
        ) : (
          <a key={index} href={`/docs/${page}`}>
            {name}
          </a>
        );
      })}
    </span>
  );
}
