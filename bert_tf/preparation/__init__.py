"""Raw text of any kind -> one sentence a line, a blank line between documents."""
