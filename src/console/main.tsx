import { render } from "preact";
import { App } from "./app.tsx";
import { applyTheme } from "./kit/layout/theme.ts";
import { openSession } from "./session/session.ts";
import "./styles/typeface.css";
import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/layout.css";
import "./styles/parts.css";
import "./styles/filters.css";
import "./styles/list.css";
import "./styles/form.css";

applyTheme();
openSession();
const place = document.getElementById("app");
if (place) render(<App />, place);
