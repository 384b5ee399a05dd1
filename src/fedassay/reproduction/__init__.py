"""The paper's tables and figures again, from one command.

Read in order: settings → datasets → federations → the figures' measurements → kept_parts →
results → plots, pages → run. A figure is a list of parts; a part gives points; a kept part is not
measured twice; what is drawn and written comes from the JSON alone.
"""
